/** `wheelhouse down`: drains the services, and never ends an agent unasked. */
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Command } from 'commander';
import { RefusedError, UnreachableError } from '#client/call-errors.js';
import type { Refusal } from '#kernel/refusal.js';
import { EXIT_DONE, EXIT_REFUSED } from '../exit-codes.js';
import { acting, type Ending, type Invocation } from '../invocation.js';
import { asOperator } from '../operator.js';
import { endLeftBehind, isUp, leftBehind } from '../services.js';
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
  const isHeld = isUp(state);
  const wasUp = isHeld || leftBehind(state).length > 0;
  if (wasUp && options.yes !== true && !(await isAgreed(invocation))) {
    invocation.warn('refused: agents-running: nothing was ended');
    return EXIT_REFUSED;
  }
  if (!isHeld) {
    await endLeftBehind(state, invocation.note);
    invocation.result(wasUp ? 'down' : 'nothing was up', { down: true, wasUp });
    return EXIT_DONE;
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

/** False when the person says no. Throws `agents-running` where there is nobody to ask. */
async function isAgreed(invocation: Invocation): Promise<boolean> {
  const refusal = await refusalNow(invocation);
  if (refusal === undefined) {
    return true;
  }
  if (invocation.isJson || !process.stdin.isTTY || !process.stderr.isTTY) {
    throw new RefusedError(refusal);
  }
  const workers = refusal.facts['workers'] ?? '';
  const answer = await answerTo(`this ends the agents at ${workers}; go on? [y/N] `);
  return /^y(es)?$/i.test(answer.trim());
}

/** Who is at work is authority's to say: while it cannot, nothing is ended unasked either. */
async function refusalNow(invocation: Invocation): Promise<Refusal | undefined> {
  try {
    return await asOperator(invocation, async ({ workers }) => refusalToEnd(await workers.list()));
  } catch (error) {
    if (error instanceof UnreachableError) {
      const why = `${error.why}; who is at work is not known, --yes ends whoever is`;
      throw new UnreachableError(error.service, why, error);
    }
    throw error;
  }
}

/** Ctrl-C and Ctrl-D are no answer, which is a no. */
function answerTo(question: string): Promise<string> {
  const prompt = createInterface({ input: process.stdin, output: process.stderr });
  return new Promise((resolve) => {
    prompt.once('SIGINT', () => prompt.close());
    prompt.once('close', () => {
      process.stderr.write('\n');
      resolve('');
    });
    prompt.question(question, (answer) => {
      resolve(answer);
      prompt.removeAllListeners('close');
      prompt.close();
    });
  });
}
