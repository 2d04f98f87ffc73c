/** A broken promise of our own code. Never caught, except by the process, which ends on it. */
export class Bug extends Error {
  override readonly name = 'Bug';
}

/** Says that something our own code ruled out has happened. */
export function bug(message: string): never {
  throw new Bug(message);
}

/** Ends a switch over a union: the compiler proves that nothing reaches it. */
export function assertNever(value: never): never {
  return bug(`a case nobody ruled: ${JSON.stringify(value)}`);
}
