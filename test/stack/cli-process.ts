/** The command as a process: with pipes, or in a terminal of its own. */
import { spawn } from 'node:child_process';
import { closeSync, constants, openSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import * as pty from 'node-pty';
import { eventually, within } from './eventually.js';

export interface CliOptions {
  readonly env?: Readonly<Record<string, string>>;
  /** Given on stdin, which then ends. Without it stdin is empty, unless it is a terminal. */
  readonly input?: string | Uint8Array;
  readonly cwd?: string;
  /** Runs it in a terminal of this size: stdout and stderr are then one. */
  readonly tty?: { readonly cols: number; readonly rows: number };
  /** How long it may take; for `wheelhouse` alone. */
  readonly deadlineMs?: number;
}

export interface CliExit {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | number | null;
  readonly stdout: Buffer;
  readonly stderr: string;
}

/** A command that runs. */
export interface CliProcess extends AsyncDisposable {
  readonly pid: number;
  readonly ended: Promise<CliExit>;
  /** The terminal it runs in, for `stty -F`; undefined without one. */
  readonly terminal: string | undefined;
  stdout(): Buffer;
  stderr(): string;
  /** Types, or writes to its stdin. */
  write(bytes: string | Uint8Array): void;
  signal(name: NodeJS.Signals): void;
  resize(cols: number, rows: number): void;
  /** Waits until what it printed, stdout and stderr together, matches. */
  printed(pattern: RegExp, deadlineMs?: number): Promise<RegExpMatchArray>;
}

export interface CliCommand {
  /** Arguments of node: the program, then its own. */
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly cwd: string;
}

const DEADLINE_MS = 30_000;

/** Runs a command to its end. */
export async function runCli(command: CliCommand, options: CliOptions = {}): Promise<CliExit> {
  await using running = startCli(command, options);
  const { deadlineMs = DEADLINE_MS } = options;
  return await within(command.args.slice(1).join(' '), deadlineMs, running.ended).catch(
    (error: unknown) => {
      throw Object.assign(error as Error, {
        message: `${(error as Error).message}\n${running.stdout()}\n${running.stderr()}`,
      });
    },
  );
}

/** Starts a command. */
export function startCli(command: CliCommand, options: CliOptions = {}): CliProcess {
  return options.tty === undefined
    ? startOnPipes(command, options)
    : startInTerminal(command, options.tty);
}

function startOnPipes(command: CliCommand, options: CliOptions): CliProcess {
  const child = spawn(process.execPath, command.args, {
    env: { ...command.env },
    cwd: command.cwd,
    stdio: [options.input === undefined ? 'ignore' : 'pipe', 'pipe', 'pipe'],
  });
  const out: Buffer[] = [];
  const err: Buffer[] = [];
  child.stdout?.on('data', (bytes: Buffer) => out.push(bytes));
  child.stderr?.on('data', (bytes: Buffer) => err.push(bytes));
  child.stdin?.on('error', () => undefined);
  if (options.input !== undefined && options.input.length > 0) {
    child.stdin?.end(options.input);
  }
  const stdout = (): Buffer => Buffer.concat(out);
  const stderr = (): string => Buffer.concat(err).toString();
  const ended = new Promise<CliExit>((resolve, reject) => {
    child.once('error', reject);
    child.once('close', (code, signal) => {
      resolve({ code, signal, stdout: stdout(), stderr: stderr() });
    });
  });
  return {
    pid: child.pid ?? 0,
    ended,
    terminal: undefined,
    stdout,
    stderr,
    write: (bytes) => child.stdin?.write(bytes),
    signal: (name) => child.kill(name),
    resize: () => undefined,
    printed: (pattern, deadlineMs) => printed(() => `${stdout()}${stderr()}`, pattern, deadlineMs),
    [Symbol.asyncDispose]: async () => {
      child.kill('SIGKILL');
      await ended;
    },
  };
}

/**
 * In a terminal. A descriptor of its slave is held open until everything is read: node-pty would
 * otherwise lose the end of what a fast program prints.
 */
function startInTerminal(
  command: CliCommand,
  size: { readonly cols: number; readonly rows: number },
): CliProcess {
  const terminal = pty.spawn(process.execPath, [...command.args], {
    ...size,
    env: { TERM: 'xterm-256color', ...command.env },
    cwd: command.cwd,
    encoding: null,
  });
  const path = (terminal as unknown as { readonly ptsName: string }).ptsName;
  const slave = openSync(path, constants.O_RDWR | constants.O_NOCTTY);
  const out: Buffer[] = [];
  terminal.onData((bytes) => out.push(Buffer.from(bytes as unknown as Uint8Array)));
  const stdout = (): Buffer => Buffer.concat(out);
  const ended = new Promise<CliExit>((resolve) => {
    terminal.onExit(({ exitCode, signal }) => {
      void drained(out).then(() => {
        closeSync(slave);
        const wasKilled = signal !== undefined && signal !== 0;
        resolve({
          code: wasKilled ? null : exitCode,
          signal: wasKilled ? signal : null,
          stdout: stdout(),
          stderr: '',
        });
      });
    });
  });
  return {
    pid: terminal.pid,
    ended,
    terminal: path,
    stdout,
    stderr: () => '',
    write: (bytes) => terminal.write(bytes as string),
    signal: (name) => process.kill(terminal.pid, name),
    resize: (cols, rows) => terminal.resize(cols, rows),
    printed: (pattern, deadlineMs) => printed(() => stdout().toString(), pattern, deadlineMs),
    [Symbol.asyncDispose]: async () => {
      terminal.kill('SIGKILL');
      await ended;
    },
  };
}

/** Nothing more has come for two looks. */
async function drained(out: readonly Buffer[]): Promise<void> {
  for (let seen = -1; seen !== out.length; ) {
    seen = out.length;
    await delay(50);
  }
}

function printed(
  text: () => string,
  pattern: RegExp,
  deadlineMs?: number,
): Promise<RegExpMatchArray> {
  return eventually(
    `${pattern} in ${JSON.stringify(text().slice(-400))}`,
    () => {
      return pattern.exec(text()) ?? undefined;
    },
    deadlineMs,
  );
}
