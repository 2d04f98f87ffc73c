/**
 * The state of authority, and the two ways in which it changes.
 *
 * Commands change what survives: those of one tick are decided in order, each against the state the one
 * before it left, committed in one transaction, and answered after it. Transitions change what does not
 * survive, at once.
 *
 * Everything here runs on the main thread and the commit is synchronous, so no question is ever
 * answered from a state that is not durable: between deciding and committing nothing else runs.
 */
import type { Clock } from '#kernel/clock.js';
import { granted, type Outcome } from '#kernel/outcome.js';
import type { Refusal } from '#kernel/refusal.js';
import type { Command } from './domain/command.js';
import { decide } from './domain/decide.js';
import type { Deciding, Settle, Settled } from './domain/deciding.js';
import type { Effect } from './domain/effect.js';
import type { Transition } from './domain/presence.js';
import { type PresentQuestion, present } from './domain/present.js';
import type { Grant } from './domain/resolve.js';
import { emptyState, type Limits, type State } from './domain/state.js';
import { evolve, type WorldEvent } from './domain/world.js';

/** Where events become durable. */
export interface Store {
  events(): Iterable<WorldEvent>;
  /** On disk when it returns. Refuses JOURNAL_FULL, having written nothing. */
  append(events: readonly WorldEvent[], atMs: number): Outcome<undefined>;
  freeBytes(): number;
}

/** Performs one effect of the state of that epoch. */
export type Perform = (effect: Effect, epoch: bigint) => void;

export interface AuthorityOptions {
  readonly store: Store;
  readonly clock: Clock;
  readonly limits: Limits;
  /** How long until what must become durable is tried again on a full disk. */
  readonly retryMs: number;
}

interface Queued {
  readonly command: Command;
  readonly settle: Settle;
}

export class Authority implements Deciding {
  readonly #options: AuthorityOptions;
  readonly #followers = new Set<() => void>();
  #state: State = emptyState;
  #epoch = 0n;
  #queue: Queued[] = [];
  #perform: Perform = () => undefined;
  /** What is still to be done of changes that are in force, in the order of their epochs. */
  readonly #outbox: (() => void)[] = [];
  #isEmptying = false;
  #isHalted = false;

  constructor(options: AuthorityOptions) {
    this.#options = options;
    this.#state = { ...emptyState, world: evolve(emptyState.world, options.store.events()) };
  }

  get state(): State {
    return this.#state;
  }

  get epoch(): bigint {
    return this.#epoch;
  }

  /** Who performs effects. Set once, before the first command. */
  onEffect(perform: Perform): void {
    this.#perform = perform;
  }

  follow(onChange: () => void): Disposable {
    this.#followers.add(onChange);
    return { [Symbol.dispose]: () => this.#followers.delete(onChange) };
  }

  submit(command: Command, settle: Settle): void {
    if (this.#isHalted) {
      return;
    }
    this.#queue.push({ command, settle });
    if (this.#queue.length === 1) {
      setImmediate(() => this.#flush());
    }
  }

  ask(command: Command): Promise<Outcome<Settled>> {
    return new Promise((resolve) => this.submit(command, resolve));
  }

  insist(command: Command, onDurable: (settled: Settled) => void = () => undefined): void {
    this.submit(command, (outcome) => {
      if (outcome.kind === 'granted') {
        onDurable(outcome.value);
      } else {
        this.#options.clock.after(this.#options.retryMs, () => this.insist(command, onDurable));
      }
    });
  }

  /** Decides nothing more: what is queued is dropped, and nobody is told. */
  halt(): void {
    this.#isHalted = true;
    this.#queue = [];
  }

  apply(transition: (state: State) => Transition): void {
    const { state: presence, effects } = transition(this.#state);
    if (presence === this.#state.presence && effects.length === 0) {
      return;
    }
    this.#become({ world: this.#state.world, presence }, effects);
    this.#announce();
  }

  present(question: PresentQuestion): Outcome<Grant> {
    const outcome = present(this.#state, question, this.#options.clock.now());
    if (outcome.kind === 'refused') {
      return outcome;
    }
    const { grant, presence, effects } = outcome.value;
    this.apply(() => ({ state: presence, effects }));
    return granted(grant);
  }

  /**
   * The group commit. On failure the state before it stays: it was never touched. What makes no facts
   * needs no disk, so it is decided again as if those that do had not been asked.
   *
   * An I/O error throws out of here, past every handler, and ends the process.
   */
  #flush(): void {
    if (this.#isHalted) {
      return;
    }
    const queue = this.#queue;
    this.#queue = [];
    for (const { settle, decision } of this.#commit(queue)) {
      if (decision.kind === 'refused') {
        this.#outbox.push(() => settle(decision));
      } else {
        this.#become(decision.value.state, decision.value.effects, settle);
      }
    }
    this.#empty();
    this.#announce();
  }

  #commit(queue: readonly Queued[]): readonly Decided[] {
    const decided = this.#decideAll(queue);
    const events = decided.flatMap(({ decision }) =>
      decision.kind === 'granted' ? decision.value.events : [],
    );
    const { store, clock } = this.#options;
    const committed = events.length === 0 ? granted(undefined) : store.append(events, clock.now());
    return committed.kind === 'granted'
      ? decided
      : this.#decideAll(queue, { refusal: committed.refusal, decided });
  }

  /** Decides in order; after a failed commit, refuses what made facts then or would make some now. */
  #decideAll(queue: readonly Queued[], failed?: Failed): readonly Decided[] {
    const { clock, limits, store } = this.#options;
    const surroundings = { nowMs: clock.now(), journalFreeBytes: store.freeBytes(), limits };
    let state = this.#state;
    return queue.map(({ command, settle }, place) => {
      const outcome = decide(command, state, surroundings);
      if (failed !== undefined && (madeFacts(failed.decided[place]) || makesFacts(outcome))) {
        return { settle, decision: { kind: 'refused', refusal: failed.refusal } };
      }
      if (outcome.kind === 'refused') {
        return { settle, decision: outcome };
      }
      const { events, presence, effects } = outcome.value;
      const world = events.length === 0 ? state.world : evolve(state.world, events);
      state = { world, presence };
      return { settle, decision: granted({ events, effects, state }) };
    });
  }

  #become(state: State, effects: readonly Effect[], settle?: Settle): void {
    this.#state = state;
    this.#epoch += 1n;
    const epoch = this.#epoch;
    if (settle !== undefined) {
      this.#outbox.push(() => settle(granted({ state, epoch })));
    }
    for (const effect of effects) {
      this.#outbox.push(() => this.#perform(effect, epoch));
    }
    if (settle === undefined) {
      this.#empty();
    }
  }

  /** An effect may cause another change; what that calls for waits its turn. */
  #empty(): void {
    if (this.#isEmptying) {
      return;
    }
    this.#isEmptying = true;
    for (let next = this.#outbox.shift(); next !== undefined; next = this.#outbox.shift()) {
      next();
    }
    this.#isEmptying = false;
  }

  #announce(): void {
    for (const onChange of this.#followers) {
      onChange();
    }
  }
}

interface Decided {
  readonly settle: Settle;
  readonly decision: Outcome<{
    readonly events: readonly WorldEvent[];
    readonly effects: readonly Effect[];
    readonly state: State;
  }>;
}

/** A commit that did not come to pass. */
interface Failed {
  readonly refusal: Refusal;
  /** What it was made of, in the order of the queue. */
  readonly decided: readonly Decided[];
}

function madeFacts(decided: Decided | undefined): boolean {
  return decided !== undefined && makesFacts(decided.decision);
}

function makesFacts(outcome: Outcome<{ readonly events: readonly WorldEvent[] }>): boolean {
  return outcome.kind === 'granted' && outcome.value.events.length > 0;
}
