/** What every command is given: where it works, as whom, and how it speaks. */
import type { Command } from 'commander';
import { RefusedError, UnreachableError } from '#client/call-errors.js';
import { kebab } from '#kernel/refusal.js';
import { type Colours, coloursFor } from './colours.js';
import { type ExitCodeOf, exitCodeOf, isSystemFault, UsageError } from './exit-codes.js';
import { refusalSentence, silenceSentence } from './refusal-words.js';
import { parseRoleName, ROLES, type RoleName, StateFolder, stateDirOf } from './state-folder.js';

export interface Invocation {
  readonly state: StateFolder;
  /** `--as`, when given. */
  readonly as: RoleName | undefined;
  readonly isJson: boolean;
  readonly isQuiet: boolean;
  /** For stdout. */
  readonly colours: Colours;
  /** What the command is for, on stdout: text for people, or the value for programs. */
  result(text: string, value: unknown): void;
  /** Progress and hints, on stderr; not when quiet, nor for programs. */
  note(text: string): void;
  /** What the reader must know whether quiet or not, on stderr. */
  warn(text: string): void;
}

interface GlobalOptions {
  readonly state?: string;
  readonly as?: string;
  readonly json?: true;
  readonly quiet?: true;
}

/** How the process is to end; the only thing commands share. */
export interface Ending {
  exitCode: number;
}

/** Does a command's work. Returns the exit code. */
export type Act<Options> = (
  invocation: Invocation,
  operands: readonly string[],
  options: Options,
) => Promise<number>;

/** Makes a command act, and turns what it throws into a message and an exit code. */
export function acting<Options extends object>(
  ending: Ending,
  command: Command,
  act: Act<Options>,
  codeOf: ExitCodeOf = exitCodeOf,
): void {
  command.action(async () => {
    const { json } = command.optsWithGlobals<GlobalOptions>();
    try {
      const invocation = invocationOf(command);
      ending.exitCode = await act(invocation, command.args, command.opts<Options>());
    } catch (error) {
      const code = codeOf(error);
      if (code === undefined) {
        throw error;
      }
      process.stderr.write(`${failureText(error, json === true)}\n`);
      ending.exitCode = code;
    }
  });
}

/** The line that says why: a named no, no answer, or nonsense. */
export function failureText(error: unknown, isJson: boolean): string {
  if (error instanceof RefusedError) {
    const { reason, facts } = error.refusal;
    return isJson
      ? JSON.stringify({ refused: kebab(reason), facts })
      : `refused: ${kebab(reason)}: ${refusalSentence(error.refusal)}`;
  }
  if (error instanceof UnreachableError) {
    return isJson
      ? JSON.stringify({ unreachable: error.service, cause: error.message })
      : `unreachable: ${silenceSentence(error)}\nSee \`wheelhouse status\`; \`wheelhouse up\` starts the services.`;
  }
  const message = error instanceof Error ? error.message : String(error);
  if (isSystemFault(error)) {
    return isJson
      ? JSON.stringify({ fault: message, code: error.code })
      : `fault: ${message}\nMend the path or its permissions, or name another state folder with --state.`;
  }
  return isJson ? JSON.stringify({ usage: message }) : `usage: ${message}`;
}

function invocationOf(command: Command): Invocation {
  const options = command.optsWithGlobals<GlobalOptions>();
  const isJson = options.json === true;
  const isQuiet = options.quiet === true;
  return {
    state: new StateFolder(stateDirOf(options.state, process.env)),
    as: options.as === undefined ? undefined : roleNameOf(options.as),
    isJson,
    isQuiet,
    colours: coloursFor(process.stdout, process.env),
    result: (text, value) => {
      process.stdout.write(isJson ? `${JSON.stringify(value)}\n` : `${text}\n`);
    },
    note: (text) => {
      if (!isQuiet && !isJson) {
        process.stderr.write(`${text}\n`);
      }
    },
    warn: (text) => {
      process.stderr.write(`${text}\n`);
    },
  };
}

function roleNameOf(text: string): RoleName {
  const roleName = parseRoleName(text);
  if (roleName === undefined) {
    throw new UsageError(
      `--as takes ROLE/NAME, as human-control/ada or agent/demo, not ${JSON.stringify(text)}; ` +
        `the roles are ${ROLES.join(', ')}`,
    );
  }
  return roleName;
}
