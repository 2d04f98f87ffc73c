/** The port through which everything around the core reads the state and asks for changes. */
import type { Outcome } from '#kernel/outcome.js';
import type { Command } from './command.js';
import type { Transition } from './presence.js';
import type { PresentQuestion } from './present.js';
import type { Grant } from './resolve.js';
import type { State } from './state.js';

/** The state right after one command, and its epoch. */
export interface Settled {
  readonly state: State;
  readonly epoch: bigint;
}

export type Settle = (outcome: Outcome<Settled>) => void;

export interface Deciding {
  readonly state: State;
  /** Grows with every change of the state, durable or not, in this life. */
  readonly epoch: bigint;
  /**
   * Decides a command at the end of this tick.
   *
   * `settle` is called once: refused, or after the facts are durable and before the command's effects,
   * so that what it sends precedes every fence of a later epoch.
   */
  submit(command: Command, settle: Settle): void;
  /** Durable when it resolves granted. */
  ask(command: Command): Promise<Outcome<Settled>>;
  /** Decides a command that must not be lost to a full disk: tries again until it is durable. */
  insist(command: Command, onDurable?: (settled: Settled) => void): void;
  /** Changes what lives only in memory, at once. */
  apply(transition: (state: State) => Transition): void;
  /** Answers a wish to look at a terminal, and registers it when it is granted. */
  present(question: PresentQuestion): Outcome<Grant>;
  /** Calls after every change, until disposed. */
  follow(onChange: () => void): Disposable;
}

/** A durable fact as the journal stores it. */
export interface StoredFact {
  /** From 1, without gaps. */
  readonly index: bigint;
  /** Milliseconds since 1970, for a reader: nothing orders by it. */
  readonly atMs: number;
  readonly kind: string;
  /** Canonical JSON. */
  readonly body: string;
}
