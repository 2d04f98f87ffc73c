/**
 * The shape of a core whose outputs are acts: an input in, the next state and the acts out.
 *
 * The shell performs effects in the order given, feeds results back as inputs and branches on nothing.
 */
export interface Step<State, Effect> {
  readonly state: State;
  readonly effects: readonly Effect[];
}
