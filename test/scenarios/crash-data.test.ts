/** A data node killed, drained, or robbed of its reaper: readers are exact, nothing is left, and it can be run again. */
import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import type { AgentBind } from '#client/agent-bind.js';
import { connect, type DataConnection } from '#client/connect.js';
import { Possession } from '#client/possession.js';
import type { Designation } from '#client/presentation.js';
import { designationOf, Workers } from '#client/workers.js';
import { WorkerState } from '#gen/wheelhouse/authority/v1/authority.js';
import { childrenOf, isAlive, processesOf } from '../stack/census.js';
import type { CliProcess } from '../stack/cli-process.js';
import { at, ownProcesses } from '../stack/depth.js';
import { eventually, within } from '../stack/eventually.js';
import { falsifier, type Subject } from '../stack/falsifier.js';
import type { Stack } from '../stack/stack.js';
import { type AgentRun, boundAgent, type Look, raw } from './actors.js';
import {
  exactToItsEnd,
  expectNoBugs,
  journalOf,
  nothingLeft,
  reasonOf,
  watchedExactly,
} from './aftermath.js';
import { Chance } from './chance.js';
import { counting, countingSlowly } from './counting.js';
import { product, Room } from './room.js';

/** Counts, and leaves behind what does not leave by itself: deaf to SIGHUP, in another session, orphaned. */
const countingWithCompany = raw(
  `(trap '' HUP; exec sleep 600) & setsid sleep 600 & (sleep 600 &); ${counting}`,
);

interface KillOptions {
  readonly rounds: number;
  readonly leftMs?: number;
  /** How long it may take until it can be run again. */
  readonly patienceMs?: number;
}

/** Readers keep exactly what they had, everything started is gone, and the worker can be run again. */
async function killedUnderFlood(subject: Subject, options: KillOptions): Promise<void> {
  const chance = Chance.drawnFor('data killed under flood');
  await using room = await Room.open(subject);
  const { stack } = room;
  const runs: AgentRun[] = [];
  for (let round = 0; round < options.rounds; round += 1) {
    const run = await eventually(
      'it can be run',
      () => room.runs(countingWithCompany),
      options.patienceMs,
    );
    runs.push(run);
    const isCommand = round % 2 === 1;
    const watcher = isCommand ? await watching(stack) : await room.operator.looksAt(room.worker);
    await chance.moment(20, 400);
    await stack.crash('data');
    await lostExactly(watcher);
    expect(reasonOf(await exactToItsEnd(run))).toBe('lost');
    await nothingLeft(stack, options.leftMs);
    await stack.restart('data');
    await stack.joined();
    await vacant(room);
  }
  // Their agents have been present all the time: a seat is not theirs for that.
  for (const run of runs) {
    await run[Symbol.asyncDispose]();
  }
  expectNoBugs(stack);
  await stack.crash('authority');
  expectOwnerLost(stack, options.rounds);
}

async function watching(stack: Stack): Promise<CliProcess> {
  const watch = stack.start(['--as', 'human-control/operator', 'watch', 'demo'], {
    cwd: stack.stateDir,
  });
  await eventually('something is shown', () => watch.stdout().length > 1_000);
  return watch;
}

async function lostExactly(watcher: Look | CliProcess): Promise<void> {
  if ('presentation' in watcher) {
    expect(reasonOf(await exactToItsEnd(watcher))).toBe('lost');
    return;
  }
  const exit = await within('the command ends', 20_000, watcher.ended);
  expect(watchedExactly(exit)).toBe('transport-lost');
  expect(exit.code).toBe(4);
}

async function vacant({ operator, worker }: Room): Promise<void> {
  await eventually('the worker is vacant', async () => {
    const all = await operator.workers.list();
    return (
      all.find(({ workerRef }) => workerRef === worker.workerRef)?.state === WorkerState.VACANT
    );
  });
}

function expectOwnerLost(stack: Stack, times: number): void {
  const facts = journalOf(stack);
  const vacated = facts.filter(({ kind }) => kind === 'vacated').slice(0, times);
  expect(vacated.map(({ body }) => body['reason'])).toEqual(Array(times).fill('owner-lost'));
  const refs = (kind: string): unknown[] =>
    facts.filter((fact) => fact.kind === kind).map(({ body }) => body['attachmentRef']);
  expect(refs('attachment-released')).toEqual(refs('attachment-reserved'));
}

/**
 * Without its reaper data does not go on: it drains, and what it started is gone all the same. The next
 * life of the node, started at once, is not disturbed by the one that still drains.
 */
async function reaperKilled(subject: Subject, patienceMs = 10_000): Promise<void> {
  await using room = await Room.open(subject, { data: { WHEELHOUSE_DRAIN_MS: '20000' } });
  const { stack } = room;
  const data = stack.pid('data');
  using idle = idleLook(room);
  const run = await room.runs(countingWithCompany);
  const look = await room.operator.looksAt(room.worker);
  await look.shows(/\d/);
  const started = processesOf(stack.workspace);
  process.kill(parentOf(data), 'SIGKILL');
  expect(reasonOf(await exactToItsEnd(look, patienceMs))).toBe('DRAINING');
  expect(reasonOf(await exactToItsEnd(run))).toBe('DRAINING');
  await run[Symbol.asyncDispose]();
  await stack.restart('data');
  await stack.joined();
  await using again = await eventually(
    'it can be run',
    () => room.runs(raw('echo; exec cat')),
    patienceMs,
  );
  await eventually('what it started has ended', () => !started.some(({ pid }) => isAlive(pid)));
  await again.possession.write(Buffer.from('still here'));
  await again.shows(/still here/, patienceMs);
  expect(isAlive(data)).toBe(true);
  idle[Symbol.dispose]();
  await eventually('data has ended', () => !isAlive(data));
  await again[Symbol.asyncDispose]();
  await nothingLeft(stack);
  expectNoBugs(stack);
}

/** A call that asks nothing: it keeps a drain going for as long as it may. */
function idleLook({ operator }: Room): Disposable {
  const call = operator.data.client.present();
  call.on('error', () => undefined);
  return { [Symbol.dispose]: () => call.cancel() };
}

function parentOf(pid: number): number {
  return Number(/^PPid:\s+(\d+)$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]);
}

/** Case C056: a graceful end in mid-stream, at 1 MB/s, loses and repeats nothing. */
async function drained(subject: Subject): Promise<void> {
  const chance = Chance.drawnFor('data drained');
  await using room = await Room.open(subject);
  const { stack } = room;
  for (const isCommand of [false, true]) {
    const run = await room.runs(countingSlowly);
    const watcher = isCommand ? await watching(stack) : await room.operator.looksAt(room.worker);
    await chance.moment(300, 600);
    await stack.drain('data');
    if ('presentation' in watcher) {
      const end = await exactToItsEnd(watcher, 5_000);
      expect(reasonOf(end)).toBe('DRAINING');
    } else {
      const exit = await within('the command ends', 5_000, watcher.ended);
      expect(watchedExactly(exit)).toBe('draining');
      expect(exit.code).toBe(3);
    }
    expect(reasonOf(await exactToItsEnd(run))).toBe('DRAINING');
    await nothingLeft(stack);
    await stack.restart('data');
    await stack.joined();
    await vacant(room);
    await run[Symbol.asyncDispose]();
  }
  expectNoBugs(stack);
}

/** A worker's agent that starts one terminal after another. */
class Seat implements Disposable {
  readonly #room: Room;
  readonly #bind: AgentBind;
  readonly #data: DataConnection;
  #worker: Designation;

  private constructor(room: Room, bind: AgentBind, data: DataConnection, worker: Designation) {
    this.#room = room;
    this.#bind = bind;
    this.#data = data;
    this.#worker = worker;
  }

  static async at(room: Room, name: string): Promise<Seat> {
    const { stack, operator } = room;
    const worker = await operator.opens(name);
    const bind = await boundAgent(stack, await operator.identityOf(name));
    const endpoint = await new Workers(bind.authority).occupy(worker);
    return new Seat(room, bind, connect(endpoint, 'data', bind.identity), worker);
  }

  async runs(argv: readonly string[]): Promise<Possession> {
    const terms = this.#terms(argv);
    return await eventually('the terminal before is gone', () =>
      Possession.open(this.#data, terms, { take: () => undefined }),
    );
  }

  async closes(): Promise<void> {
    const { workers } = this.#room.operator;
    await workers.close(this.#worker);
    this.#worker = designationOf(await workers.reopen(this.#worker));
    await new Workers(this.#bind.authority).occupy(this.#worker);
  }

  /** Cut while it begins: before, in, or after the fork. */
  async cutsShort(argv: readonly string[], afterMs: number): Promise<void> {
    const { argv: _, worker, isHeadless: headless, ...rest } = this.#terms(argv);
    const { workerRef, generation: expectedWorkerGeneration } = worker;
    const call = this.#data.client.possess();
    call.on('error', () => undefined);
    call.resume();
    const value = {
      workerRef,
      expectedWorkerGeneration,
      argv: [...argv],
      windowBytes: 0,
      headless,
    };
    call.write({ operation: { $case: 'open', value: { ...value, ...rest } } });
    await new Promise((resolve) => setTimeout(resolve, afterMs));
    call.cancel();
  }

  #terms(argv: readonly string[]) {
    return {
      worker: this.#worker,
      argv,
      env: {},
      geometry: { rows: 24, cols: 80 },
      isHeadless: true,
    };
  }

  [Symbol.dispose](): void {
    this.#data[Symbol.dispose]();
    this.#bind.close();
  }
}

/** Case C007: whichever way a hundred terminals end, no descriptor and no process of them stays. */
async function hundredTerminals(subject: Subject, patienceMs = 10_000): Promise<void> {
  const chance = Chance.drawnFor('a hundred terminals');
  await using room = await Room.open(subject);
  const { stack } = room;
  const names = ['a', 'b', 'c', 'd', 'e'];
  const seats = await Promise.all(names.map((name) => Seat.at(room, name)));
  const ways: readonly ((seat: Seat) => Promise<void>)[] = [
    async (seat) => {
      const ended = await (await seat.runs(['true'])).ended;
      expect(reasonOf(ended)).toBe('ENDED');
    },
    async (seat) => {
      const possession = await seat.runs(['sleep', '600']);
      await seat.closes();
      expect(reasonOf(await possession.ended)).toBe('WORKER_CLOSED');
    },
    async (seat) => {
      const ended = await (await seat.runs(raw('setsid sleep 2 & echo held'))).ended;
      expect(reasonOf(ended)).toBe('ENDED');
    },
    async (seat) => {
      await seat.cutsShort(['sleep', '600'], chance.between(0, 40));
    },
  ];
  await Promise.all(seats.map((seat) => ways[0]?.(seat)));
  const data = stack.pid('data');
  await eventually('the first are gone', () => terminalsOf(data) === 0, patienceMs);
  const before = readdirSync(`/proc/${data}/fd`).length;
  for (const way of ways) {
    for (let round = 0; round < 5; round += 1) {
      await Promise.all(seats.map((seat) => way(seat)));
    }
    const isOver = (): boolean =>
      terminalsOf(data) === 0 &&
      childrenOf(data).length === 0 &&
      readdirSync(`/proc/${data}/fd`).length <= before;
    await eventually('what was opened is closed', isOver, patienceMs);
  }
  for (const seat of seats) {
    seat[Symbol.dispose]();
  }
  await nothingLeft(stack);
  expectNoBugs(stack);
}

/** Masters and slaves that a process holds. */
function terminalsOf(pid: number): number {
  return readdirSync(`/proc/${pid}/fd`).filter((fd) => {
    try {
      return /^\/dev\/(ptmx|pts\/)/.test(readlinkSync(`/proc/${pid}/fd/${fd}`));
    } catch {
      return false; // closed since it was listed
    }
  }).length;
}

describe('data crashes', () => {
  at(ownProcesses, () => {
    test('killed under flood: readers keep exactly what they had, and nothing is left', () =>
      killedUnderFlood(product, { rounds: 3 }));
  });
  falsifier(
    'B7 the reaper ends what does not leave',
    { file: 'services/data/adapters/descendants.ts', find: 'killAll(left);', replace: '' },
    (subject) => killedUnderFlood(subject, { rounds: 1, leftMs: 4_000 }),
  );
  falsifier(
    'B7 the reaper adopts what leaves its session',
    { file: 'services/data/adapters/descendants.ts', find: 'becomeSubreaper();', replace: '' },
    (subject) => killedUnderFlood(subject, { rounds: 1, leftMs: 4_000 }),
  );
  falsifier(
    'a new life of a node releases what the old one held',
    {
      file: 'services/authority/domain/reconcile.ts',
      find: 'if (attachment.dataIncarnation !== dataIncarnation) {',
      replace: 'if (false) {',
    },
    (subject) => killedUnderFlood(subject, { rounds: 2, patienceMs: 3_000 }),
  );

  // In a container the reaper is all that keeps it: its end is the container's.
  at(['processes'], () => {
    test('the reaper killed: data drains, and what it started is gone', () =>
      reaperKilled(product));
    falsifier(
      'B7 data does not outlive its reaper',
      {
        file: 'services/data/main.ts',
        find: 'dieWithParent(constants.signals.SIGUSR2);',
        replace: '',
      },
      (subject) => reaperKilled(subject, 3_000),
    );
    falsifier(
      'a node that drains does not come back',
      { file: 'services/data/start.ts', find: 'link.drain();', replace: '' },
      (subject) => reaperKilled(subject, 3_000),
    );
  });

  test('C056 drained at 1 MB/s: streams end draining, exact', () => drained(product));
  falsifier(
    'a drain says so',
    { file: 'services/data/start.ts', find: "carriers.end('DRAINING');", replace: '' },
    drained,
  );

  at(ownProcesses, () => {
    test('C007 a hundred terminals, ended in four ways, leave nothing', () =>
      hundredTerminals(product));
  });
  falsifier(
    'a terminal that is over is hung up',
    {
      file: 'services/data/carrier.ts',
      find: 'void this.terminal.hangUp()',
      replace: 'void Promise.resolve()',
    },
    (subject) => hundredTerminals(subject, 3_000),
  );
});
