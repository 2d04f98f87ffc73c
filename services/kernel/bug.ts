/** A broken promise of our own code. Never caught, except by the process, which ends on it. */
export class Bug extends Error {
  override readonly name = 'Bug';
}

/** Says that something our own code ruled out has happened. */
export function bug(message: string): never {
  throw new Bug(message);
}

/**
 * Ends a switch over a union: the compiler proves that nothing reaches it.
 *
 * Says the kind and no more: what else is in a value may be bytes of a terminal, and a log has none.
 */
export function assertNever(value: never): never {
  return bug(`a case nobody ruled: ${kindOf(value)}`);
}

function kindOf(value: unknown): string {
  const kind = typeof value === 'object' && value !== null && 'kind' in value && value.kind;
  return typeof kind === 'string' ? kind : `a ${typeof value} without a kind`;
}
