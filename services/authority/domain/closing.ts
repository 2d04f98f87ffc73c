/**
 * One worker's closing: presentations first, then the possession, then done (law P7).
 *
 *   awaiting-node ──node-ready──► fencing presentations ──acked──► fencing possession ──acked──► finished
 *        ▲                              │                               │
 *        └────────── node-gone ─────────┴───────────────────────────────┘
 *
 * A worker whose terminal is gone is fenced all the same while its node is connected: of a look that is
 * on its way out, the last frame may still be at that node's transport. Only a node that is away has
 * nothing left of it, since its presentations died with its stream: it is not waited for.
 *
 * The deadline is of one attempt on one stream: when it passes unacknowledged, the node is cut off and
 * whoever waits is told `fenced-by-disconnect`. It is gone with its stream, so that a new one is never
 * cut for the slowness of an older. The closing itself goes on with the node's next stream; whoever
 * waits does so for a time of their own, whatever becomes of the attempts.
 */
import { assertNever } from '#kernel/bug.js';
import type { Step } from '#kernel/stepper.js';
import type { FenceScope } from './effect.js';

/** What was acknowledged when a wait was over. */
export type Fencing = 'fenced' | 'fenced-by-disconnect';

export type ClosingState =
  | { readonly kind: 'awaiting-node' }
  | {
      readonly kind: 'fencing';
      readonly scope: FenceScope;
      /** Whether there is a terminal, so that a node that goes away is to be waited for. */
      readonly isAttached: boolean;
    }
  | { readonly kind: 'finished' };

export type ClosingInput =
  /** The node's stream serves. */
  | { readonly kind: 'node-ready' }
  | { readonly kind: 'acked'; readonly scope: FenceScope }
  | { readonly kind: 'node-gone' }
  /** The attempt's time is up. */
  | { readonly kind: 'deadline' }
  /** Whoever waits has waited long enough. */
  | { readonly kind: 'waited' };

export type ClosingEffect =
  | { readonly kind: 'send-fence'; readonly scope: FenceScope }
  /** Starts the time of an attempt, in place of an older one's. */
  | { readonly kind: 'arm-deadline' }
  | { readonly kind: 'disarm-deadline' }
  | { readonly kind: 'cut-node' }
  /** Tells whoever waits that the node did not acknowledge. */
  | { readonly kind: 'report-disconnect' }
  /** All is acknowledged: the worker may be closed. */
  | { readonly kind: 'finish' }
  /** Tells whoever waits that all is acknowledged, though the disk has not taken the end yet. */
  | { readonly kind: 'report-fenced' };

export type ClosingStep = Step<ClosingState, ClosingEffect>;

type FencingState = Extract<ClosingState, { readonly kind: 'fencing' }>;

const awaitingNode: ClosingState = { kind: 'awaiting-node' };

/** Where a closing starts: a node to fence, nothing to fence, or a node to wait for. */
export function beginClosing(given: {
  readonly isAttached: boolean;
  readonly isNodeConnected: boolean;
}): ClosingStep {
  if (given.isNodeConnected) {
    return beginAttempt(given.isAttached);
  }
  return given.isAttached
    ? { state: awaitingNode, effects: [{ kind: 'report-disconnect' }] }
    : { state: { kind: 'finished' }, effects: [{ kind: 'finish' }] };
}

export function stepClosing(state: ClosingState, input: ClosingInput): ClosingStep {
  switch (state.kind) {
    case 'finished':
      return { state, effects: input.kind === 'waited' ? [{ kind: 'report-fenced' }] : [] };
    case 'awaiting-node':
      return whileAwaiting(state, input);
    case 'fencing':
      return whileFencing(state, input);
    default:
      return assertNever(state);
  }
}

function whileAwaiting(state: ClosingState, input: ClosingInput): ClosingStep {
  switch (input.kind) {
    case 'node-ready':
      return beginAttempt(true);
    case 'waited':
      return { state, effects: [{ kind: 'report-disconnect' }] };
    case 'acked':
    case 'node-gone':
    case 'deadline':
      return { state, effects: [] };
    default:
      return assertNever(input);
  }
}

function whileFencing(state: FencingState, input: ClosingInput): ClosingStep {
  switch (input.kind) {
    case 'acked':
      return input.scope === state.scope ? afterAck(state) : { state, effects: [] };
    case 'node-ready':
      // A newer stream: what was sent on the older one counts for nothing.
      return beginAttempt(state.isAttached);
    case 'node-gone':
      return state.isAttached
        ? { state: awaitingNode, effects: [{ kind: 'disarm-deadline' }] }
        : unacknowledged({ kind: 'disarm-deadline' });
    case 'waited':
      return { state, effects: [{ kind: 'report-disconnect' }] };
    case 'deadline':
      return state.isAttached
        ? { state: awaitingNode, effects: [{ kind: 'cut-node' }, { kind: 'report-disconnect' }] }
        : unacknowledged({ kind: 'cut-node' });
    default:
      return assertNever(input);
  }
}

/** One time for both acknowledgements. */
function beginAttempt(isAttached: boolean): ClosingStep {
  const { state, effects } = fence('PRESENTATIONS');
  return { state: { ...state, isAttached }, effects: [...effects, { kind: 'arm-deadline' }] };
}

function afterAck({ scope, isAttached }: FencingState): ClosingStep {
  if (scope === 'POSSESSION') {
    return {
      state: { kind: 'finished' },
      effects: [{ kind: 'disarm-deadline' }, { kind: 'finish' }],
    };
  }
  const { state, effects } = fence('POSSESSION');
  return { state: { ...state, isAttached }, effects };
}

function fence(scope: FenceScope): {
  readonly state: Omit<FencingState, 'isAttached'>;
  readonly effects: readonly ClosingEffect[];
} {
  return { state: { kind: 'fencing', scope }, effects: [{ kind: 'send-fence', scope }] };
}

/** The node is away and there is nothing to wait for: told as it was, and finished. */
function unacknowledged(effect: ClosingEffect): ClosingStep {
  return {
    state: { kind: 'finished' },
    effects: [effect, { kind: 'report-disconnect' }, { kind: 'finish' }],
  };
}
