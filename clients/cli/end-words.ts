/** How a look or a run ended, in one line. */
import { RefusedError } from '#client/call-errors.js';
import type { ProgramExit, StreamEnd } from '#client/stream-end.js';
import { type CloseReasonName, kebab } from '#kernel/refusal.js';
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

/** What a watch's end means, and what to do next; undefined where the line says it all. */
export function endAdvice(
  end: StreamEnd,
  { name, holdLimitMs }: { readonly name: string; readonly holdLimitMs: number | undefined },
): string | undefined {
  switch (end.kind) {
    case 'closed':
      return end.reason === 'LAGGING' && holdLimitMs === 0
        ? 'With --hold-limit 0 a look never slows the program down, and so ends when it cannot keep up. ' +
            `Look again with wheelhouse watch ${name}, or allow it some seconds.`
        : closeAdvice(end.reason, name);
    case 'detached':
      return `You left; the program goes on. Look again with wheelhouse watch ${name}.`;
    case 'lost':
      return 'The connection broke; see wheelhouse status, then look again.';
  }
}

function closeAdvice(reason: CloseReasonName, name: string): string | undefined {
  switch (reason) {
    case 'ENDED':
      return `The program has ended, and all it wrote since you came was shown. The next one is seen with wheelhouse watch ${name} --wait.`;
    case 'LAGGING':
      return 'This reader held the terminal for longer than it may; what was shown is exact up to there. Look again, or see --hold-limit.';
    case 'WORKER_CLOSED':
      return `The worker was closed; wheelhouse worker reopen ${name} makes it anew.`;
    case 'REPLACED':
      return 'A newer look of yours took the place of this one.';
    case 'RELEASED':
    case 'AGENT_UNBOUND':
    case 'OCCUPANT_CHANGED':
    case 'CARRIER_REPLACED':
    case 'ATTACHMENT_REINCARNATED':
      return `Whoever worked there has gone or begun anew; see wheelhouse watch ${name} --wait.`;
    case 'GENERATION_ADVANCED':
      return `The worker was reopened; look at it as it is now with wheelhouse watch ${name}.`;
    case 'DRAINING':
      return 'The services are going down; see wheelhouse status, and wheelhouse up.';
    case 'WORLD_RESTARTED':
    case 'AUTHORITY_UNREACHABLE':
    case 'OWNER_LOST':
    case 'CONTROL_UNBOUND':
      return 'The services could not go on with this look; see wheelhouse status, then look again.';
    default:
      return undefined;
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
