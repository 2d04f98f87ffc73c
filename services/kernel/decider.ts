/**
 * The shape of a core whose facts must survive: commands in, events out, state as a fold.
 *
 * Events are made durable before anyone is told of them.
 */
import type { Outcome } from './outcome.js';

export interface Decider<Command, Event, State> {
  readonly initial: State;
  decide(command: Command, state: State): Outcome<readonly Event[]>;
  evolve(state: State, event: Event): State;
}
