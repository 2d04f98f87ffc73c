/** How a look or a run ended, in one line. */
import { RefusedError } from '#client/call-errors.js';
import type { ProgramExit, StreamEnd } from '#client/stream-end.js';
import { kebab } from '#kernel/refusal.js';
import { EXIT_DONE, EXIT_REFUSED, EXIT_UNREACHABLE } from './exit-codes.js';

/** What came of asking once more after a loss; undefined when nothing did. */
export type Since = string | undefined;

export function endSentence(end: StreamEnd, since: Since): string {
  switch (end.kind) {
    case 'closed': {
      const positions = `acked=${end.ackedSeq} sent=${end.sentSeq} produced=${end.producedSeq}`;
      return `closed: ${kebab(end.reason)} ${positions}${exitWords(end.exit)}`;
    }
    case 'detached': {
      const sent = end.sender === undefined ? '' : ` sent=${end.sender.sentSeq}`;
      const produced = end.sender === undefined ? '' : ` produced=${end.sender.producedSeq}`;
      return `closed: detached acked=${end.takenSeq}${sent}${produced}`;
    }
    case 'lost': {
      const why = since === undefined ? '' : `, since ${since}`;
      return `closed: transport-lost${why} acked=${end.takenSeq}`;
    }
  }
}

/** The same for programs. */
export function endValue(end: StreamEnd, since: Since): Record<string, unknown> {
  switch (end.kind) {
    case 'closed':
      return {
        closed: kebab(end.reason),
        ackedSeq: Number(end.ackedSeq),
        sentSeq: Number(end.sentSeq),
        producedSeq: Number(end.producedSeq),
        ...exitValue(end.exit),
      };
    case 'detached':
      return {
        closed: 'detached',
        ackedSeq: Number(end.takenSeq),
        ...(end.sender === undefined
          ? {}
          : { sentSeq: Number(end.sender.sentSeq), producedSeq: Number(end.sender.producedSeq) }),
      };
    case 'lost':
      return {
        closed: 'transport-lost',
        ...(since === undefined ? {} : { since }),
        ackedSeq: Number(end.takenSeq),
      };
  }
}

/** Of `watch`: END and leaving are what was wanted, any other reason is a no, silence is neither. */
export function watchExitCode(end: StreamEnd): number {
  switch (end.kind) {
    case 'closed':
      return end.reason === 'ENDED' ? EXIT_DONE : EXIT_REFUSED;
    case 'detached':
      return EXIT_DONE;
    case 'lost':
      return EXIT_UNREACHABLE;
  }
}

/** The name of the refusal in a failure; undefined for any other failure. */
export function refusalNameOf(error: unknown): Since {
  return error instanceof RefusedError ? kebab(error.refusal.reason) : undefined;
}

function exitWords(exit: ProgramExit | undefined): string {
  if (exit === undefined) {
    return '';
  }
  return exit.kind === 'code' ? ` exit=${exit.code}` : ` signal=${exit.signal}`;
}

function exitValue(exit: ProgramExit | undefined): Record<string, number> {
  if (exit === undefined) {
    return {};
  }
  return exit.kind === 'code' ? { exitCode: exit.code } : { exitSignal: exit.signal };
}
