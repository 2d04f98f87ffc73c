/** What the process says when it ends. */
import { RefusedError, UnreachableError } from '#client/call-errors.js';
import type { ProgramExit } from '#client/stream-end.js';

/** Of every command but `run`. */
export const EXIT_DONE = 0;
export const EXIT_USAGE = 2;
export const EXIT_REFUSED = 3;
export const EXIT_UNREACHABLE = 4;

/** Of `run`: whatever is not the program's own. */
export const EXIT_NOT_THE_PROGRAMS = 125;
const EXIT_NOT_EXECUTABLE = 126;
const EXIT_NOT_FOUND = 127;

/** BSD's EX_SOFTWARE: our own code broke a promise. */
export const EXIT_BUG = 70;

/** What was asked for makes no sense, whatever the state of the world. */
export class UsageError extends Error {
  override readonly name = 'UsageError';
}

/** Undefined for a bug. */
export type ExitCodeOf = (error: unknown) => number | undefined;

export const exitCodeOf: ExitCodeOf = (error) => {
  if (error instanceof UsageError) {
    return EXIT_USAGE;
  }
  if (error instanceof RefusedError) {
    return EXIT_REFUSED;
  }
  return error instanceof UnreachableError || isSystemFault(error) ? EXIT_UNREACHABLE : undefined;
};

/** The machine said no to a file, a folder or a port: neither a ruling nor our own mistake. */
export function isSystemFault(error: unknown): error is NodeJS.ErrnoException {
  return error instanceof Error && 'syscall' in error && 'code' in error;
}

/** As shells have it: 126 for a program that cannot be executed, 127 for one that is not there. */
export const runExitCodeOf: ExitCodeOf = (error) => {
  if (error instanceof RefusedError && error.refusal.reason === 'SPAWN_FAILED') {
    const { cause } = error.refusal.facts;
    if (cause === 'not-executable') {
      return EXIT_NOT_EXECUTABLE;
    }
    return cause === 'not-found' ? EXIT_NOT_FOUND : EXIT_NOT_THE_PROGRAMS;
  }
  return exitCodeOf(error) === undefined ? undefined : EXIT_NOT_THE_PROGRAMS;
};

/** The program's own code, or 128 and the number of the signal that killed it. */
export function programExitCode(exit: ProgramExit): number {
  return exit.kind === 'code' ? exit.code : 128 + exit.signal;
}
