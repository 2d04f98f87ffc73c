/** Whoever looks or works killed, ended or stopped: nobody else waits for them for longer than they may. */
import { createHash } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { RefusedError } from '#client/call-errors.js';
import type { Designation } from '#client/presentation.js';
import { designationOf } from '#client/workers.js';
import { WorkerState } from '#gen/wheelhouse/authority/v1/authority.js';
import type { CliProcess } from '../stack/cli-process.js';
import { eventually, within } from '../stack/eventually.js';
import { falsifier, type Subject } from '../stack/falsifier.js';
import { type Mutation, makeMutant } from '../stack/mutant.js';
import { type AgentRun, type Look, raw } from './actors.js';
import { exactToItsEnd, expectNoBugs, nothingLeft, reasonOf, watchedExactly } from './aftermath.js';
import { Chance } from './chance.js';
import { countedSha256, counting, positionOf } from './counting.js';
import { product, Room } from './room.js';

/** More than every window and ring on the way together: a terminal that is held does not get so far. */
const MORE_THAN_HELD = 16_000_000n;
/** What leaves only when it is made to. */
const COMPANY = `(trap '' HUP; exec sleep 600) & (sleep 600 &)`;

function watches(room: Room, ...options: string[]): CliProcess {
  const args = ['--as', 'human-control/operator', 'watch', 'demo', ...options];
  return room.stack.start(args, { cwd: room.stack.stateDir });
}

async function shownSomething(command: CliProcess): Promise<void> {
  await eventually('something is shown', () => command.stdout().length > 1_000, 20_000);
}

async function goesOn(run: AgentRun, deadlineMs?: number): Promise<void> {
  const wanted = run.received.bytes + MORE_THAN_HELD;
  await eventually('the agent goes on', () => run.received.bytes > wanted, deadlineMs);
}

async function looks(room: Room, worker: Designation, deadlineMs?: number): Promise<Look> {
  return await eventually('it can be looked at', () => room.operator.looksAt(worker), deadlineMs);
}

function expectPiece(stdout: Buffer, fromSeq: bigint): void {
  const sha256 = createHash('sha256').update(stdout).digest('hex');
  expect(sha256).toBe(countedSha256(fromSeq, BigInt(stdout.length)));
}

/** A killed look holds nothing and keeps nobody from looking. */
async function watcherKilled(subject: Subject, rounds: number): Promise<void> {
  const chance = Chance.drawnFor('the watcher killed');
  await using room = await Room.open(subject);
  const run = await room.runs(raw(counting));
  for (let round = 0; round < rounds; round += 1) {
    await using watch = watches(room);
    await shownSomething(watch);
    await chance.moment(0, 200);
    watch.signal('SIGKILL');
    const { stdout } = await watch.ended;
    expectPiece(stdout, positionOf(stdout));
    await goesOn(run, 5_000);
    const look = await looks(room, room.worker, 5_000);
    await look.shows(/\d/);
    await look.presentation.detach();
  }
  await run[Symbol.asyncDispose]();
  await nothingLeft(room.stack);
  expectNoBugs(room.stack);
}

/** Opened by the command, so that the agent's identity lies in the state folder. */
async function opens({ stack, operator }: Room, name: string): Promise<Designation> {
  const args = ['--as', 'human-control/operator', 'worker', 'open', name];
  expect(await stack.wheelhouse(args)).toMatchObject({ code: 0 });
  const all = await operator.workers.list();
  return designationOf(all.find((worker) => worker.name === name)!);
}

function runs({ stack }: Room, name: string, argv: readonly string[]): CliProcess {
  return stack.start(['run', name, '--', ...argv], { cwd: stack.stateDir });
}

const codes = { SIGKILL: null, SIGTERM: 143, SIGHUP: 129 } as const;

interface EndOptions {
  readonly signals: readonly (keyof typeof codes)[];
  readonly leftMs?: number;
}

/** Its program is hung up and gone, its worker vacant, the look at it closed by name. */
async function wrapperEnds(subject: Subject, { signals, leftMs }: EndOptions): Promise<void> {
  const chance = Chance.drawnFor('the wrapper ended');
  await using room = await Room.open(subject);
  const floodWorker = await opens(room, 'flood');
  const quietWorker = await opens(room, 'quiet');
  for (const signal of signals) {
    await using flood = runs(room, 'flood', raw(`${COMPANY}; ${counting}`));
    await using quiet = runs(room, 'quiet', raw(`${COMPANY}; exec sleep 600`));
    const floodLook = await looks(room, floodWorker);
    const quietLook = await looks(room, quietWorker);
    await chance.moment(50, 300);
    flood.signal(signal);
    quiet.signal(signal);
    const quietEnd = await within('the look ends', 10_000, quietLook.ended);
    expect(['RELEASED', 'AGENT_UNBOUND']).toContain(reasonOf(quietEnd));
    await closesByName(room, floodWorker, floodLook);
    const exits = await within('both end', 20_000, Promise.all([flood.ended, quiet.ended]));
    expect(exits.map(({ code }) => code)).toEqual([codes[signal], codes[signal]]);
    expectPiece(exits[0].stdout, 0n);
    await nothingLeft(room.stack, leftMs);
    await vacant(room, floodWorker);
    await vacant(room, quietWorker);
  }
  expectNoBugs(room.stack);
}

/** A fence under flood may have to reset the stream: asking again tells the name. */
async function closesByName(room: Room, worker: Designation, look: Look): Promise<void> {
  const end = await exactToItsEnd(look);
  if (end.kind === 'closed') {
    expect(['RELEASED', 'AGENT_UNBOUND']).toContain(end.reason);
    return;
  }
  const since = await room.operator.looksAt(worker).catch((error: unknown) => error);
  expect(since).toBeInstanceOf(RefusedError);
  expect(since).toMatchObject({
    refusal: { reason: expect.stringMatching(/LOCUS_NOT_OCCUPIED|CARRIER_NOT_ATTACHED/) },
  });
}

async function vacant({ operator }: Room, { workerRef }: Designation): Promise<void> {
  await eventually('the worker is vacant', async () => {
    const all = await operator.workers.list();
    return all.find((each) => each.workerRef === workerRef)?.state === WorkerState.VACANT;
  });
}

/** A stopped look may hold the terminal as long as it asked for, and is alive for as long as it answers. */
async function watcherStopped(room: Room, patienceMs: number): Promise<void> {
  const run = await room.runs(raw(counting));
  await using lagging = watches(room, '--hold-limit', '1');
  await shownSomething(lagging);
  lagging.signal('SIGSTOP');
  await goesOn(run);
  lagging.signal('SIGCONT');
  const lagged = await within('it ends', 20_000, lagging.ended);
  expect(watchedExactly(lagged)).toBe('lagging');
  expect(lagged.code).toBe(3);

  await using silent = watches(room, '--hold-limit', '30');
  await shownSomething(silent);
  silent.signal('SIGSTOP');
  await goesOn(run, patienceMs);
  const look = await looks(room, room.worker);
  await look.shows(/\d/);
  await look.presentation.detach();
  silent.signal('SIGCONT');
  const lost = await within('it ends', 20_000, silent.ended);
  expect(watchedExactly(lost)).toBe('transport-lost');
  expect(lost.code).toBe(4);
  await run[Symbol.asyncDispose]();
}

/** A stopped agent holds its own terminal; when it does not answer for too long it is gone. */
async function wrapperStopped(room: Room): Promise<void> {
  const worker = await opens(room, 'stopped');
  await using wrapper = runs(room, 'stopped', raw(`${COMPANY}; ${counting}`));
  const look = await looks(room, worker);
  await shownSomething(wrapper);
  wrapper.signal('SIGSTOP');
  await delay(700);
  wrapper.signal('SIGCONT');
  const before = wrapper.stdout().length;
  await eventually('it goes on', () => wrapper.stdout().length > before + 5_000_000);

  wrapper.signal('SIGSTOP');
  await closesByName(room, worker, look);
  await vacant(room, worker);
  wrapper.signal('SIGCONT');
  const exit = await within('it ends', 20_000, wrapper.ended);
  expect(exit.code).toBe(125);
  expect(exit.stderr).toContain('transport-lost');
  expectPiece(exit.stdout, 0n);
}

async function stopped(subject: Subject, patienceMs: number): Promise<void> {
  await using room = await Room.open(subject);
  await Promise.all([watcherStopped(room, patienceMs), wrapperStopped(room)]);
  await nothingLeft(room.stack);
  expectNoBugs(room.stack);
}

/** The product, but that it notices within 4 s that nobody answers: 15 s are long for a test. */
const noticingSoon = [
  {
    file: 'services/chassis/grpc-server.ts',
    find: 'keepaliveMs: 10_000',
    replace: 'keepaliveMs: 2_000',
  },
  {
    file: 'services/chassis/grpc-server.ts',
    find: 'keepaliveTimeoutMs: 5_000',
    replace: 'keepaliveTimeoutMs: 2_000',
  },
];

/** To the end of the stream, in either way in which a killed client's connection may show it. */
function deaf(file: string): readonly Mutation[] {
  return [
    { file, find: 'onGone: () => this.#gone()', replace: 'onGone: () => undefined' },
    { file, find: 'onHalfClose: () => this.#leave()', replace: 'onHalfClose: () => undefined' },
  ];
}

describe('client crashes', () => {
  test('a watcher killed under flood holds nothing', () => watcherKilled(product, 3));
  falsifier('a look ends with its stream', deaf('services/data/rpc/present.ts'), (subject) =>
    watcherKilled(subject, 1),
  );

  test('a wrapper killed, ended or hung up takes its program with it', () =>
    wrapperEnds(product, { signals: ['SIGKILL', 'SIGTERM', 'SIGHUP'] }));
  falsifier(
    'a terminal ends with its possession',
    deaf('services/data/rpc/possess.ts'),
    (subject) => wrapperEnds(subject, { signals: ['SIGKILL'], leftMs: 4_000 }),
  );

  test('a stopped watcher and a stopped wrapper are waited for, and then are not', async () => {
    using quick = makeMutant(...noticingSoon);
    await stopped(quick, 20_000);
  });
  falsifier(
    'a caller that does not answer is gone',
    {
      file: 'services/chassis/grpc-server.ts',
      find: 'keepaliveMs: 10_000',
      replace: 'keepaliveMs: 600_000',
    },
    (subject) => stopped(subject, 6_000),
  );
});
