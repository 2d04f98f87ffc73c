/** `wheelhouse down`: drains the services, and never ends an agent unasked. */
import { createInterface } from 'node:readline/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Command } from 'commander';
import { RefusedError, UnreachableError } from '#client/call-errors.js';
import { EXIT_DONE } from '../exit-codes.js';
import { acting, type Ending, type Invocation } from '../invocation.js';
import { asOperator } from '../operator.js';
import { endLeftBehind, isUp } from '../services.js';
import { refusalToEnd } from '../worker-words.js';

interface DownOptions {
  readonly yes?: true;
}

const EXAMPLES = `
Without --yes it names the agents it would end, and asks where there is somebody to ask.

Examples:
  wheelhouse down
  wheelhouse down --yes`;

/** Data drains within 10 s, authority within 10 s, and `up` cuts what is left after 20 s each. */
const DOWN_MS = 60_000;

export function addDown(program: Command, ending: Ending): void {
  const command = program
    .command('down')
    .description('end the agents and stop the services')
    .option('-y, --yes', 'end agents that are at work')
    .addHelpText('after', EXAMPLES);
  acting<DownOptions>(ending, command, down);
}

async function down(
  invocation: Invocation,
  _operands: readonly string[],
  options: DownOptions,
): Promise<number> {
  const { state } = invocation;
  if (!isUp(state)) {
    const ended = state.exists ? await endLeftBehind(state, invocation.note) : 0;
    invocation.result(ended > 0 ? 'down' : 'nothing was up', { down: true, wasUp: ended > 0 });
    return EXIT_DONE;
  }
  if (options.yes !== true) {
    await agree(invocation);
  }
  const pid = state.up()?.pid;
  if (pid === undefined) {
    throw new UnreachableError('up', `${state.dir} is held, but not by anybody who left a number`);
  }
  invocation.note('draining …');
  process.kill(pid, 'SIGTERM');
  const deadline = performance.now() + DOWN_MS;
  while (isUp(state)) {
    if (performance.now() > deadline) {
      throw new UnreachableError('up', `process ${pid} has not drained; see ${state.path('log')}`);
    }
    await sleep(50);
  }
  invocation.result('down', { down: true, wasUp: true });
  return EXIT_DONE;
}

/** Throws `agents-running` unless nobody is at work or the person says so. */
async function agree(invocation: Invocation): Promise<void> {
  const refusal = await asOperator(invocation, async ({ workers }) =>
    refusalToEnd(await workers.list()),
  );
  if (refusal !== undefined && !(await isAgreed(refusal.facts['workers'] ?? ''))) {
    throw new RefusedError(refusal);
  }
}

/** Asks where there is somebody to ask. */
async function isAgreed(workers: string): Promise<boolean> {
  if (!process.stdin.isTTY || !process.stderr.isTTY) {
    return false;
  }
  const prompt = createInterface({ input: process.stdin, output: process.stderr });
  const answer = await prompt.question(`this ends the agents at ${workers}; go on? [y/N] `);
  prompt.close();
  return /^y(es)?$/i.test(answer.trim());
}
