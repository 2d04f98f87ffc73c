/**
 * Following somebody's facts, as a stepper: which to pass on, and when to dial again.
 *
 *   away ──begin, due, hint──► dialling ──opened, next fact──► following
 *    ▲                            │                               │
 *    └──────────── ended ─────────┴──── ended, or a gap ──────────┘
 *
 * Facts are numbered from 1 without gaps, so what is a repetition and what is missing shows by itself.
 * Invariant F1: what is delivered is `after + 1, after + 2, …`, whatever the inputs are.
 */
import type { Step } from '#kernel/stepper.js';
import { type Backoff, backoffMs } from './backoff.js';

export interface Following {
  /** The newest fact delivered. */
  readonly lastIndex: bigint;
  /** Since when there is no stream any more; undefined while there is one, and before the first. */
  readonly cutOffAtMs: number | undefined;
  readonly link: Link;
}

/** `failed`: attempts in a row that came to nothing. A delivered fact is something, and so is a long life. */
interface Link {
  readonly kind: 'away' | 'dialling' | 'following';
  readonly failed: number;
  readonly dialledAtMs: number;
}

/** `atMs` is monotonic. */
export type FollowInput =
  | { readonly kind: 'begin'; readonly atMs: number }
  /** The owner has taken the call. */
  | { readonly kind: 'opened' }
  | { readonly kind: 'fact'; readonly index: bigint }
  /** The stream is over, however it ended. */
  | { readonly kind: 'ended'; readonly atMs: number }
  /** Somebody says that there are facts up to an index. Anybody may say anything. */
  | { readonly kind: 'hint'; readonly index: bigint; readonly atMs: number }
  /** The wait that was asked for is over. */
  | { readonly kind: 'due'; readonly atMs: number };

export type FollowEffect =
  | { readonly kind: 'dial'; readonly after: bigint }
  | { readonly kind: 'deliver' }
  /** The stream skipped something: it is of no use any more. `ended` follows. */
  | { readonly kind: 'drop-link' }
  /** Replaces any wait before it. */
  | { readonly kind: 'wait'; readonly delayMs: number };

/** When to try again. `firstMs` is also the least time between two diallings. */
export type FollowLimits = Backoff;

export function startFollowing(after: bigint): Following {
  return {
    lastIndex: after,
    cutOffAtMs: undefined,
    link: { kind: 'away', failed: 0, dialledAtMs: Number.NEGATIVE_INFINITY },
  };
}

export function follow(
  state: Following,
  input: FollowInput,
  limits: FollowLimits,
): Step<Following, FollowEffect> {
  switch (input.kind) {
    case 'begin':
    case 'due':
      return dial(state, input.atMs);
    case 'opened':
      return { state: opened(state), effects: [] };
    case 'fact':
      return receive(state, input.index);
    case 'ended':
      return leave(state, input.atMs, limits);
    case 'hint':
      return hear(state, input, limits);
  }
}

function dial(state: Following, atMs: number): Step<Following, FollowEffect> {
  const { link } = state;
  if (link.kind !== 'away') {
    return { state, effects: [] };
  }
  return {
    state: { ...state, link: { ...link, kind: 'dialling', dialledAtMs: atMs } },
    effects: [{ kind: 'dial', after: state.lastIndex }],
  };
}

function opened(state: Following): Following {
  const { link } = state;
  return link.kind === 'dialling'
    ? { ...state, cutOffAtMs: undefined, link: { ...link, kind: 'following' } }
    : state;
}

function receive(state: Following, index: bigint): Step<Following, FollowEffect> {
  const { link, lastIndex } = state;
  if (link.kind === 'away' || index <= lastIndex) {
    return { state, effects: [] };
  }
  if (index > lastIndex + 1n) {
    return { state, effects: [{ kind: 'drop-link' }] };
  }
  const kept = opened(state);
  return {
    state: { ...kept, lastIndex: index, link: { ...kept.link, failed: 0 } },
    effects: [{ kind: 'deliver' }],
  };
}

function leave(state: Following, atMs: number, limits: Backoff): Step<Following, FollowEffect> {
  const { link } = state;
  if (link.kind === 'away') {
    return { state, effects: [] };
  }
  const wasFollowing = link.kind === 'following';
  const hasLived = wasFollowing && atMs - link.dialledAtMs > limits.maxMs;
  const failed = (hasLived ? 0 : link.failed) + 1;
  return {
    state: {
      ...state,
      cutOffAtMs: wasFollowing ? atMs : state.cutOffAtMs,
      link: { ...link, kind: 'away', failed },
    },
    effects: [{ kind: 'wait', delayMs: backoffMs(limits, failed) }],
  };
}

/**
 * Only the waiting listen, and only to news: the owner lives, so the backoff begins anew.
 *
 * While a stream is open a hint adds nothing to it: the owner sends facts as they come, and on a dead
 * connection a second stream would be as dead.
 */
function hear(
  state: Following,
  { index, atMs }: { readonly index: bigint; readonly atMs: number },
  limits: Backoff,
): Step<Following, FollowEffect> {
  const { link, lastIndex } = state;
  if (link.kind !== 'away' || index <= lastIndex) {
    return { state, effects: [] };
  }
  const fresh: Following = { ...state, link: { ...link, failed: 0 } };
  const earlyMs = link.dialledAtMs + limits.firstMs - atMs;
  return earlyMs > 0
    ? { state: fresh, effects: [{ kind: 'wait', delayMs: earlyMs }] }
    : dial(fresh, atMs);
}
