/** Names, folders, commands, sizes and numbers beyond what is taken, each refused by name, and what lies at the edge. */
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { RefusedError } from '#client/call-errors.js';
import type { Designation } from '#client/presentation.js';
import { designationOf, Workers } from '#client/workers.js';
import { PossessRequest, PossessResponse, PresentResponse } from '#gen/wheelhouse/data/v1/data.js';
import { Reason } from '#gen/wheelhouse/refusal/v1/refusal.js';
import { runCli } from '../stack/cli-process.js';
import { eventually, within } from '../stack/eventually.js';
import { falsifier, type Subject } from '../stack/falsifier.js';
import { boundAgent, Operator, raw } from './actors.js';
import {
  nameOf,
  possessOpen,
  presentOpen,
  type RawCall,
  RawConnection,
  type RawEnd,
} from './hostile-client.js';
import { echo, loggedNoBug, stillServes } from './hostile-room.js';
import { product, Room } from './room.js';

const possess = '/wheelhouse.data.v1.DataService/Possess';

/** The name a call is refused by, with the field at fault. */
async function refusal(call: Promise<unknown>): Promise<string> {
  return await call.then(
    () => 'granted',
    (error: unknown) => (error instanceof RefusedError ? named(error.refusal) : String(error)),
  );
}

function named({ reason, facts }: Pick<RawEnd, 'reason' | 'facts'>): string {
  const { field, cause } = facts;
  const detail = field ?? cause;
  return detail === undefined ? String(reason) : `${reason} ${detail}`;
}

/** A worker's own agent, seated, asking data by hand. */
class Seat implements Disposable {
  readonly worker: Designation;
  readonly bind: Awaited<ReturnType<typeof boundAgent>>;
  readonly data: RawConnection;

  private constructor(worker: Designation, bind: Seat['bind'], data: RawConnection) {
    this.worker = worker;
    this.bind = bind;
    this.data = data;
  }

  static async at(room: Room, name: string, workspace = room.stack.workspace): Promise<Seat> {
    const { stack, operator } = room;
    const worker = designationOf(await operator.workers.open({ name, workspace }));
    const bind = await boundAgent(stack, await operator.identityOf(name));
    await new Workers(bind.authority).occupy(worker);
    return new Seat(worker, bind, await RawConnection.open(stack.endpoints.data, bind.identity));
  }

  /** Asks to run something. */
  starts(terms: Parameters<typeof possessOpen>[1]): RawCall {
    const call = this.data.call(possess);
    call.send(possessOpen(this.worker, terms));
    return call;
  }

  /** How an attempt to run something is refused. */
  async refused(terms: Parameters<typeof possessOpen>[1]): Promise<string> {
    return named(await this.starts(terms).ended());
  }

  [Symbol.dispose](): void {
    this.data[Symbol.dispose]();
    this.bind[Symbol.dispose]();
  }
}

/** What a program printed until it ended. */
async function printed(call: RawCall): Promise<string> {
  const events = (): readonly PossessResponse['event'][] =>
    call.messages.map((message) => PossessResponse.decode(message).event);
  await eventually('the program ends', () => events().some((event) => event?.$case === 'closed'));
  const output = events().map((event) =>
    event?.$case === 'output' ? event.value.payload : Buffer.alloc(0),
  );
  call.finish();
  await call.ended();
  return Buffer.concat(output).toString('utf8');
}

const badNames = [
  '',
  '.',
  '..',
  '../demo',
  'a/b',
  'Demo',
  'démo',
  '\u{1F980}',
  'demo\n',
  'de\0mo',
  'de mo',
  ' demo',
  '-demo',
  '\u001b[2Jdemo',
  'demo\u202e',
  'x'.repeat(64),
  'x'.repeat(200_000),
];

const badWorkspaces = [
  '',
  '.',
  'workspace',
  '../..',
  '~',
  '/a\0b',
  `/${'x'.repeat(4_096)}`,
  'C:\\',
];

async function names(room: Room): Promise<void> {
  const { workers } = room.operator;
  const workspace = room.stack.workspace;
  for (const name of badNames) {
    expect(await refusal(workers.open({ name, workspace }))).toBe('REQUEST_INVALID name');
    if (name !== '') {
      expect(await refusal(workers.open({ name: 'fine', actor: name, workspace }))).toBe(
        'REQUEST_INVALID actor',
      );
      expect(await refusal(workers.open({ name: 'fine', dataNode: name, workspace }))).toBe(
        'REQUEST_INVALID dataNode',
      );
      expect(await refusal(room.operator.identityOf(name))).toBe('ACTOR_WITHOUT_WORKER');
    }
  }
  for (const wrong of badWorkspaces) {
    expect(await refusal(workers.open({ name: 'fine', workspace: wrong }))).toBe(
      'REQUEST_INVALID workspace',
    );
  }
  expect((await workers.list()).map(({ name }) => name)).toEqual(['demo']);
}

/** A folder may be called anything: a program runs in it, and lists show it without obeying it. */
async function oddFolders(room: Room): Promise<void> {
  const folder = join(room.stack.workspace, 'a \n\u001b[31m \u{1F980}', '..', 'b\t"$(id)"');
  mkdirSync(join(room.stack.workspace, 'a \n\u001b[31m \u{1F980}'));
  mkdirSync(folder);
  using seat = await Seat.at(room, 'odd', folder);
  const call = seat.starts({ argv: raw('exec pwd -P') });
  expect(await printed(call)).toBe(`${join(folder)}\n`);
  using nowhere = await Seat.at(room, 'nowhere', join(room.stack.workspace, 'nowhere'));
  expect(await nowhere.refused({ argv: ['true'] })).toBe('SPAWN_FAILED workspace-missing');
}

async function commands(seat: Seat): Promise<void> {
  const nul = 'REQUEST_INVALID open.argv';
  expect(await seat.refused({ argv: [] })).toBe('REQUEST_INVALID open.argv');
  expect(await seat.refused({ argv: ['true', 'a\0b'] })).toBe(nul);
  expect(await seat.refused({ argv: ['tr\0ue'] })).toBe(nul);
  expect(await seat.refused({ argv: ['true'], env: { A: 'a\0b' } })).toBe(nul);
  expect(await seat.refused({ argv: ['true'], env: { 'A\0': 'b' } })).toBe(nul);
  expect(await seat.refused({ argv: ['true'], env: { 'A=B': 'c' } })).toBe(
    'REQUEST_INVALID open.env',
  );
  expect(await seat.refused({ argv: ['true'], env: { '': 'c' } })).toBe('REQUEST_INVALID open.env');
  expect(await seat.refused({ argv: [''] })).toBe('SPAWN_FAILED not-found');
  expect(await seat.refused({ argv: ['/'] })).toBe('SPAWN_FAILED not-executable');
  expect(await seat.refused({ argv: ['../\u{1F980}'] })).toBe('SPAWN_FAILED not-found');
  const tooMuch = 'REQUEST_INVALID open.argv';
  expect(await seat.refused({ argv: ['true', 'x'.repeat(128 * 1024)] })).toBe(tooMuch);
  expect(await seat.refused({ argv: Array.from({ length: 100_000 }, () => '') })).toBe(
    'SPAWN_FAILED not-found',
  );
  expect(await seat.refused({ argv: ['true'], env: { A: 'x'.repeat(128 * 1024) } })).toBe(tooMuch);
  const beyond = seat.starts({ argv: ['true', 'x'.repeat(600_000)] });
  expect(nameOf(await beyond.ended())).toBe('RESOURCE_EXHAUSTED');

  // At the edge: as much as one argument may be, and as many as there is room for.
  const longest = 'x'.repeat(128 * 1024 - 100);
  const measured = seat.starts({
    argv: raw('printf "%s %s %s" "$0" "$#" "$(printf %s "$1" | wc -c)"').concat('zero', longest),
  });
  expect(await printed(measured)).toBe(`zero 1 ${longest.length}`);
  const many = Array.from({ length: 60_000 }, () => 'x');
  const counted = seat.starts({ argv: raw('printf %s "$#"').concat('zero', ...many) });
  expect(await printed(counted)).toBe('60000');
  const shown = seat.starts({
    argv: raw('env'),
    env: { __proto__: 'p', constructor: 'c', LINES_OF: 'one\ntwo', [`${'N'.repeat(1_000)}`]: '' },
  });
  expect(await printed(shown)).toContain('\nLINES_OF=one\ntwo\n');
}

async function geometries(seat: Seat): Promise<void> {
  for (const [rows, cols] of [
    [0, 80],
    [24, 0],
    [0, 0],
    [65_536, 80],
    [24, 65_537],
    [2 ** 32 - 1, 2 ** 32 - 1],
  ] as const) {
    expect(await seat.refused({ argv: ['true'], rows, cols })).toBe('GEOMETRY_INVALID');
  }
  const call = seat.starts({ argv: raw('read go; stty size'), rows: 65_535, cols: 65_535 });
  await call.heard(1);
  const wrong = [
    { rows: 0, cols: 0 },
    { rows: 65_536, cols: 65_536 },
    { rows: 65_537, cols: 1 },
    { rows: 2 ** 32 - 1, cols: 1 },
  ];
  for (const [index, geometry] of wrong.entries()) {
    const value = { request: BigInt(index + 7), geometry };
    call.send(PossessRequest.encode({ operation: { $case: 'resize', value } }).finish());
    expect(PossessResponse.decode(await call.heard(index + 2)).event).toMatchObject({
      $case: 'refused',
      value: { request: value.request, reason: Reason.GEOMETRY_INVALID },
    });
  }
  const go = { seq: 0n, payload: Buffer.from('go\n') };
  call.send(PossessRequest.encode({ operation: { $case: 'input', value: go } }).finish());
  expect(await printed(call)).toBe('65535 65535\n');
}

/** A window beyond the largest is cut to it; a hold beyond the longest is refused. */
async function terms({ stack, worker }: Room): Promise<void> {
  const operator = await stack.identityFor('human-control', 'operator');
  using data = await RawConnection.open(stack.endpoints.data, operator);
  const look = (asked: Parameters<typeof presentOpen>[1]): RawCall => {
    const call = data.call('/wheelhouse.data.v1.DataService/Present');
    call.send(presentOpen(worker, { replace: true, ...asked }));
    return call;
  };
  for (const holdLimitMs of [30_001, 2 ** 32 - 1]) {
    expect(named(await look({ holdLimitMs }).ended())).toBe('REQUEST_INVALID open.holdLimitMs');
  }
  for (const [asked, given] of [
    [2 ** 32 - 1, 16 * 1024 * 1024],
    [1, 1],
  ] as const) {
    const call = look({ windowBytes: asked, holdLimitMs: 0 });
    const { event } = PresentResponse.decode(await call.heard(1));
    expect(event).toMatchObject({ $case: 'opened', value: { windowBytes: given } });
    call.finish();
    await call.ended();
  }
}

async function refusedAtTheEdge(subject: Subject): Promise<void> {
  await using room = await Room.open(subject);
  await using run = await room.runs(echo);
  await run.shows(/ready/);
  await names(room);
  await terms(room);
  await oddFolders(room);
  using seat = await Seat.at(room, 'edge');
  await commands(seat);
  await geometries(seat);
  await stillServes(room, run);
}

/** As many as there may be, also when several are asked for at once. */
async function exhausted(subject: Subject): Promise<void> {
  await using room = await Room.open(subject, {
    authority: { WHEELHOUSE_WORKERS_MAX: '5' },
    data: { WHEELHOUSE_TERMINALS_MAX: '3' },
  });
  await using run = await room.runs(echo);
  await run.shows(/ready/);
  using one = await Seat.at(room, 'one');
  using two = await Seat.at(room, 'two');
  using three = await Seat.at(room, 'three');
  const spare = await room.operator.opens('spare');
  const { workers } = room.operator;
  const more = { name: 'more', workspace: room.stack.workspace };
  expect(await refusal(workers.open(more))).toBe('WORKERS_EXHAUSTED');
  // A closed one counts: it can be reopened.
  await workers.close(spare);
  expect(await refusal(workers.open(more))).toBe('WORKERS_EXHAUSTED');
  expect(await refusal(workers.reopen(spare))).toBe('granted');

  const seats = [one, two, three];
  const asked = seats.map((seat) => seat.starts({ argv: ['cat'] }));
  const answers = await Promise.all(asked.map((call) => call.answered()));
  expect(answers.toSorted()).toEqual(['TERMINALS_EXHAUSTED', 'granted', 'granted']);
  const waiting = seats.find((_seat, index) => answers[index] !== 'granted')!;
  expect(await waiting.refused({ argv: ['cat'] })).toBe('TERMINALS_EXHAUSTED');
  await stillServes(room, run);
  for (const call of asked) {
    call.cancel();
  }
  await eventually('there is room again', async () => {
    const call = waiting.starts({ argv: ['cat'] });
    const answer = await call.answered();
    call.cancel();
    return answer === 'granted';
  });
  await stillServes(room, run);
}

/** A disk that is nearly full: nothing new begins, what is there goes on, and ending it works. */
async function journalFull(subject: Subject): Promise<void> {
  const settings = { authority: {} as Record<string, string> };
  await using room = await Room.open(subject, settings);
  const { stack } = room;
  await using run = await room.runs(echo);
  await run.shows(/ready/);
  const spare = await room.operator.opens('spare');
  await room.operator.workers.close(spare);
  const empty = await room.operator.opens('empty');
  const agent = await room.operator.identityOf('empty');
  using seated = await boundAgent(stack, agent);

  settings.authority['WHEELHOUSE_JOURNAL_LOW_WATER_BYTES'] = String(Number.MAX_SAFE_INTEGER);
  await stack.crash('authority');
  await stack.restart('authority');
  await stack.joined();
  await using operator = await Operator.at(stack);
  const { workers } = operator;
  const workspace = stack.workspace;
  expect(await refusal(workers.open({ name: 'new', workspace }))).toBe('JOURNAL_FULL');
  expect(await refusal(workers.reopen(spare))).toBe('JOURNAL_FULL');
  expect(await refusal(operator.identityOf('empty'))).toBe('JOURNAL_FULL');
  expect(await refusal(boundAgent(stack, agent))).toBe('JOURNAL_FULL');
  const occupied = await eventually('the agent is bound again', async () => {
    const outcome = await refusal(new Workers(seated.authority).occupy(empty));
    return /JOURNAL_FULL|granted/.test(outcome) ? outcome : undefined;
  });
  expect(occupied).toBe('JOURNAL_FULL');
  await eventually('the running agent is seated again', async () => {
    const [demo] = await workers.list();
    return demo?.state === 2;
  });
  await stillServes({ stack, operator, worker: room.worker }, run);
  expect((await workers.close(room.worker)).isFenced).toBe(true);
  expect((await workers.close(empty)).isFenced).toBe(true);
  expect((await workers.list()).map(({ state }) => state)).toEqual([5, 5, 5]);
  expect((await within('the program ends', 10_000, run.ended)).kind).toBe('closed');
  loggedNoBug(stack);

  // Whoever tries to take the store of a living authority is told so, and leaves it alone.
  const second = await runCli({
    args: [join(subject.distDir, 'services', 'authority', 'main.js')],
    cwd: workspace,
    env: { WHEELHOUSE_STATE: stack.stateDir, WHEELHOUSE_LISTEN: '127.0.0.1:0' },
  });
  expect(second.code).toBe(78);
  expect(second.stdout.toString()).toMatch(/^\{"failed":"STORE_IN_USE/);
  expect(await refusal(workers.open({ name: 'new', workspace }))).toBe('JOURNAL_FULL');
}

describe('hostile limits', () => {
  test('what lies outside is refused by name, and what lies at the edge works', () =>
    refusedAtTheEdge(product));
  falsifier(
    'no NUL reaches a program',
    {
      file: 'services/data/adapters/program.ts',
      find: "word.includes('\\0')",
      replace: 'false',
    },
    refusedAtTheEdge,
  );
  test('workers-exhausted and terminals-exhausted, one by one and at once', () =>
    exhausted(product));
  falsifier(
    'terminals-max where it counts',
    {
      file: 'services/data/rpc/possess.ts',
      find: /const admitted = this\.#admit\(\);\n\s+if/,
      replace: "const admitted = { kind: 'granted' };\n        if",
    },
    exhausted,
  );
  test('journal-full refuses what begins, not what ends; store-in-use refuses a second authority', () =>
    journalFull(product));
  falsifier(
    'journal-full',
    {
      file: 'services/authority/domain/decision.ts',
      find: 'journalFreeBytes < limits.journalLowWaterBytes',
      replace: 'false',
    },
    journalFull,
  );
});
