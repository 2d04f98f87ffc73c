/**
 * Processes left in the background: started, waited for until they say one thing, and let go.
 *
 * What they are to do crosses by message, never by argument: arguments are for everybody to see.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { RefusedError, UnreachableError } from '#client/call-errors.js';
import { type Facts, parseReasonName } from '#kernel/refusal.js';

/** What such a process says once: that it is ready, or why it will not be. */
type Report =
  | { readonly kind: 'ready'; readonly value: unknown }
  | { readonly kind: 'refused'; readonly reason: string; readonly facts: Facts }
  | { readonly kind: 'unreachable'; readonly service: string; readonly message: string };

export interface BackgroundTask {
  /** For people. */
  readonly what: string;
  /** Arguments of this command. */
  readonly args: readonly string[];
  /** Given to it as its first message. */
  readonly message: unknown;
  /** Where what it says later goes; nowhere when left out. */
  readonly stderr?: number;
}

const STARTING_MS = 60_000;

/** Returns what the process said when it was ready. Throws the `RefusedError` or `UnreachableError` it met. */
export async function startInBackground(task: BackgroundTask): Promise<unknown> {
  const main = fileURLToPath(new URL('./main.js', import.meta.url));
  const child = spawn(process.execPath, ['--', main, ...task.args], {
    cwd: '/',
    detached: true,
    stdio: ['ignore', 'ignore', task.stderr ?? 'ignore', 'ipc'],
  });
  const report = await reportOf(child, task);
  if (child.connected) {
    child.disconnect();
  }
  child.unref();
  return outcomeOf(report, task.what);
}

function reportOf(child: ChildProcess, { what, message }: BackgroundTask): Promise<Report> {
  return new Promise((resolve) => {
    const fail = (why: string): void => {
      resolve({ kind: 'unreachable', service: what, message: why });
    };
    const overdue = setTimeout(() => {
      child.kill();
      fail('it was not ready in time');
    }, STARTING_MS);
    child.once('message', (said) => {
      clearTimeout(overdue);
      resolve(said as Report);
    });
    child.once('error', (error) => fail(error.message));
    child.once('exit', () => {
      clearTimeout(overdue);
      fail('it ended at once');
    });
    child.send({ message });
  });
}

function outcomeOf(report: Report, what: string): unknown {
  switch (report.kind) {
    case 'ready':
      return report.value;
    case 'refused': {
      const reason = parseReasonName(report.reason);
      throw reason === undefined
        ? new UnreachableError(what, report.reason)
        : new RefusedError({ reason, facts: report.facts });
    }
    case 'unreachable':
      throw new UnreachableError(report.service, report.message);
  }
}

/** The process's own side: the message it was started with. */
export function taskMessage(): Promise<unknown> {
  return new Promise((resolve) => {
    process.once('message', (said) => resolve(Reflect.get(Object(said), 'message')));
  });
}

/** Says that the process is ready. Whoever started it may have gone: then there is nobody to tell. */
export function reportReady(value: unknown): void {
  tell({ kind: 'ready', value });
}

/** Says why it will not be. Anything but a refusal or a fault is a bug, and is thrown again. */
export function reportFailure(error: unknown): void {
  if (error instanceof RefusedError) {
    tell({ kind: 'refused', ...error.refusal });
  } else if (error instanceof UnreachableError) {
    tell({ kind: 'unreachable', service: error.service, message: error.why });
  } else {
    throw error;
  }
}

function tell(report: Report): void {
  if (process.connected) {
    process.send?.(report, () => process.connected && process.disconnect());
  }
}
