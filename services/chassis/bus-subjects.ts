/** Names on the bus. */

/** Who has news. */
export type HintingPlane = 'authority' | 'provenance';

/** Where a plane says that it has news. */
export function hintSubject(plane: HintingPlane): string {
  return `wheelhouse.hint.${plane}`;
}
