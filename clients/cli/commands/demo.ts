/** `wheelhouse demo`: everything once, for somebody new. What `npm start` calls. */
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { type Command, InvalidArgumentError } from 'commander';
import { RefusedError } from '#client/call-errors.js';
import { connect } from '#client/connect.js';
import { Presentation } from '#client/presentation.js';
import { designationOf } from '#client/workers.js';
import { type Worker, WorkerState } from '#gen/wheelhouse/authority/v1/authority.js';
import { keepActorIdentity } from '../actor-identity.js';
import { DetachKeys } from '../detach-keys.js';
import { startDetached } from '../detached-run.js';
import { EXIT_DONE } from '../exit-codes.js';
import { FrameCapture } from '../frame-capture.js';
import { acting, type Ending, type Invocation } from '../invocation.js';
import { asOperator, type Operator } from '../operator.js';
import { DEFAULT_SIZE, Screen } from '../screen.js';
import { isUp, Services } from '../services.js';
import { formatSize } from '../size.js';
import { stateDirOf } from '../state-folder.js';
import { isAtWork } from '../worker-words.js';
import { announce, holdUntilSignal, keepUp } from './up.js';

interface DemoOptions {
  readonly seconds: number;
}

/** The worker and its actor. */
const DEMO = 'demo';
const SECONDS_MAX = 3600;
const OPENINGS_TRIED = 20;
const OPENING_PAUSE_MS = 100;
const ENTER_ALTERNATE = Buffer.from('\x1b[?1049h\x1b[2J\x1b[H');

const EXAMPLES = `
Starts the services unless they are up, runs a program that repaints by itself in worker demo,
shows it through a presentation, and keeps the services up until Ctrl-C.

Examples:
  wheelhouse demo
  npm start`;

export function addDemo(program: Command, ending: Ending): void {
  const command = program
    .command('demo')
    .description('see it all once: services, a worker, a program, a look at it')
    .option('--seconds <n>', 'how long to look', parseSeconds, 8)
    .addHelpText('after', EXAMPLES);
  acting<DemoOptions>(ending, command, demo);
}

async function demo(
  invocation: Invocation,
  _operands: readonly string[],
  { seconds }: DemoOptions,
): Promise<number> {
  const lookMs = seconds * 1000;
  if (isUp(invocation.state)) {
    invocation.note('the services are up already');
    await show(invocation, lookMs);
    printNext(invocation, 'the services were up before and stay up.');
    return EXIT_DONE;
  }
  const hold = holdUntilSignal();
  const services = await Services.start(invocation.state, { note: invocation.note });
  try {
    announce(invocation, services.endpoints);
    const shown = show(invocation, lookMs);
    await Promise.race([shown, keepUp(services, hold)]);
    await Promise.race([
      shown.then(() => printNext(invocation, 'the services stay up until Ctrl-C here.')),
      hold,
    ]);
    await keepUp(services, hold);
    invocation.note('draining …');
  } finally {
    await services.drain();
  }
  invocation.note('down');
  return EXIT_DONE;
}

async function show(invocation: Invocation, lookMs: number): Promise<void> {
  await asOperator(invocation, async (operator) => {
    const worker = await demoWorker(invocation, operator);
    if (isAtWork(worker)) {
      invocation.note(`worker ${DEMO} is at work already`);
    } else {
      invocation.note(`running a program as agent ${worker.actor} …`);
      await runProgram(invocation, worker);
    }
    await look(invocation, operator, worker, lookMs);
  });
}

/** Opened, opened again, or used as it stands. */
async function demoWorker(invocation: Invocation, operator: Operator): Promise<Worker> {
  const all = await operator.workers.list();
  const known = all.find(({ name }) => name === DEMO);
  const worker = await openOrReopen(operator, known);
  await keepActorIdentity(invocation.state, operator, worker);
  if (known === undefined) {
    invocation.note(`opened worker ${DEMO}`);
  }
  return worker;
}

async function openOrReopen({ workers }: Operator, known: Worker | undefined): Promise<Worker> {
  if (known === undefined) {
    return await workers.open({ name: DEMO, workspace: process.cwd() });
  }
  return known.state === WorkerState.CLOSED ? await workers.reopen(designationOf(known)) : known;
}

async function runProgram({ state }: Invocation, worker: Worker): Promise<void> {
  const program = fileURLToPath(new URL('../demo-program.js', import.meta.url));
  await startDetached(state, {
    worker: worker.name,
    as: undefined,
    argv: [process.execPath, program],
    env: {},
    geometry: DEFAULT_SIZE,
    isHeadless: true,
  });
}

/** The look itself: a terminal sees it live, anything else a few frames as text. */
async function look(
  invocation: Invocation,
  { control, endpoints }: Operator,
  worker: Worker,
  lookMs: number,
): Promise<void> {
  const leaving = new AbortController();
  const keys = new DetachKeys();
  const screen = new Screen((bytes) => {
    if (keys.feed(bytes)) {
      leaving.abort();
    }
  });
  void screen.broken.then(() => leaving.abort());
  const frames = new FrameCapture();
  invocation.note(
    `looking at it for ${lookMs / 1000} s …${screen.isTerminal && process.stdin.isTTY ? ' (q leaves)' : ''}`,
  );
  const endpoint = worker.dataEndpoint || endpoints.data[worker.dataNode] || '';
  using data = connect(endpoint, 'data', control.identity);
  const opening = openPatiently(() =>
    Presentation.open(
      data,
      { worker: designationOf(worker), replace: true },
      {
        take: (bytes) => (screen.isTerminal ? screen.show(bytes) : frames.feed(bytes)),
      },
    ),
  );
  if (screen.isTerminal) {
    screen.enterRaw();
    void screen.show(ENTER_ALTERNATE);
  }
  try {
    const presentation = await opening;
    await Promise.race([
      sleep(lookMs, undefined, { signal: leaving.signal }).catch(() => undefined),
      presentation.ended,
    ]);
    await presentation.detach();
    if (!screen.isTerminal) {
      invocation.note(describe(presentation));
    }
  } finally {
    await screen.leave({ undoModes: true });
  }
  for (const frame of screen.isTerminal ? [] : frames.some(3)) {
    process.stdout.write(`${frame}\n`);
  }
}

function describe({ opening }: Presentation): string {
  return `seen through a presentation at ${formatSize(opening.geometry)}; a few frames:`;
}

/** The program has just been started: its terminal may not be known everywhere yet. */
async function openPatiently(open: () => Promise<Presentation>): Promise<Presentation> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await open();
    } catch (error) {
      const isEarly =
        error instanceof RefusedError &&
        ['LOCUS_NOT_OCCUPIED', 'CARRIER_NOT_ATTACHED'].includes(error.refusal.reason);
      if (!isEarly || attempt >= OPENINGS_TRIED) {
        throw error;
      }
    }
    await sleep(OPENING_PAUSE_MS);
  }
}

function printNext(invocation: Invocation, ending: string): void {
  const prefix = commandFor(invocation);
  const lines = [
    '',
    `The look is over; the program goes on, and ${ending}`,
    'In another terminal, in this folder:',
    '',
    `  ${prefix} watch demo`,
    `  ${prefix} worker list`,
    `  ${prefix} worker open mine`,
    `  ${prefix} run mine -- bash`,
    `  ${prefix} worker close demo`,
    '',
  ];
  process.stdout.write(`${lines.join('\n')}\n`);
}

function parseSeconds(text: string): number {
  const seconds = Number(text);
  if (!(seconds >= 1 && seconds <= SECONDS_MAX)) {
    throw new InvalidArgumentError(`It is a number of seconds from 1 to ${SECONDS_MAX}.`);
  }
  return seconds;
}

/** Literally pasteable: with the state folder wherever a new shell would look elsewhere. */
function commandFor({ state }: Invocation): string {
  const isDefault = state.dir === stateDirOf(undefined, { ...process.env, WHEELHOUSE_STATE: '' });
  return isDefault
    ? 'npx wheelhouse'
    : `npx wheelhouse --state '${state.dir.replaceAll("'", "'\\''")}'`;
}
