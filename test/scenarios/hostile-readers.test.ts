/** Readers that do not read, or do not say so: they wait, nobody else does, and nothing piles up behind them. */
import { setTimeout as delay } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import type { Designation } from '#client/presentation.js';
import { Workers } from '#client/workers.js';
import { BindRequest } from '#gen/wheelhouse/authority/v1/authority.js';
import {
  FollowStatusResponse,
  PossessRequest,
  PresentResponse,
} from '#gen/wheelhouse/data/v1/data.js';
import { CloseReason } from '#gen/wheelhouse/refusal/v1/refusal.js';
import { at, ownProcesses } from '../stack/depth.js';
import { eventually, within } from '../stack/eventually.js';
import { falsifier, type Subject } from '../stack/falsifier.js';
import type { Plane, Stack } from '../stack/stack.js';
import { AgentRun, boundAgent, raw } from './actors.js';
import { framed, possessOpen, presentOpen, type RawCall, RawConnection } from './hostile-client.js';
import { echo, growthOf, stillServes } from './hostile-room.js';
import { product, Room } from './room.js';

const MIB = 1024 * 1024;
const present = '/wheelhouse.data.v1.DataService/Present';
const possess = '/wheelhouse.data.v1.DataService/Possess';
const dataStatus = '/wheelhouse.data.v1.DataService/FollowStatus';
const authorityMethod = (name: string): string =>
  `/wheelhouse.authority.v1.AuthorityService/${name}`;

/** Fills what is kept of its output once, then waits for a line, then never stops. */
const flood = raw('head -c 1000000 /dev/zero; echo full; read go; exec cat /dev/zero');

interface Flooding {
  readonly worker: Designation;
  readonly run: AgentRun;
}

async function flooding(room: Room, count: number): Promise<readonly Flooding[]> {
  const { stack, operator } = room;
  const all: Flooding[] = [];
  for (let index = 0; index < count; index += 1) {
    const worker = await operator.opens(`flood-${index}`);
    const agent = await operator.identityOf(`flood-${index}`);
    const run = await AgentRun.starts(stack, agent, worker, flood, { isHeadless: true });
    all.push({ worker, run });
  }
  return all;
}

/** Terminals of which the node says that a reader holds them. */
async function heldCount(follower: RawCall): Promise<number> {
  const newest = follower.messages.at(-1) ?? Buffer.alloc(0);
  return FollowStatusResponse.decode(newest).terminals.filter(({ held }) => held).length;
}

/** One, then twenty: each may hold its terminal, and costs its window and a mebibyte at most. */
async function neverRead(subject: Subject): Promise<void> {
  await using room = await Room.open(subject);
  await using run = await room.runs(echo);
  await run.shows(/ready/);
  const { stack } = room;
  const all = await flooding(room, 21);
  const operator = await stack.identityFor('human-control', 'operator');
  using watching = await RawConnection.open(
    stack.endpoints.data,
    await stack.identityFor('service', 'control'),
  );
  const follower = watching.call(dataStatus);
  follower.send(new Uint8Array());
  follower.finish();
  using data = await RawConnection.open(stack.endpoints.data, operator);
  const windowBytes = 64 * 1024;
  const looks = all.map(({ worker }) => {
    const look = data.call(present);
    look.send(presentOpen(worker, { windowBytes, holdLimitMs: 30_000 }));
    return look;
  });
  for (const look of looks) {
    await look.heard(1);
    look.stopReading();
  }
  await delay(500);
  const [first, ...others] = all;
  for (const [members, noise] of [
    [[first!], 8 * MIB],
    [others, 0],
  ] as const) {
    const grown = growthOf(stack, 'data');
    const held = await heldCount(follower);
    for (const member of members) {
      await member.run.possession.write(Buffer.from('go\n'));
    }
    await eventually(
      'they are held',
      async () => (await heldCount(follower)) === held + members.length,
      20_000,
    );
    await delay(500);
    expect(grown()).toBeLessThan(members.length * (windowBytes + MIB) + noise);
  }
  await stillServes(room, run);
  for (const { run: flooded } of all) {
    flooded.possession.abort();
    flooded.bind.close();
  }
}

/** One that reads and never says so is shown its window to the last byte, and no more. */
async function neverAcknowledge(subject: Subject): Promise<void> {
  await using room = await Room.open(subject);
  await using run = await room.runs(echo);
  await run.shows(/ready/);
  const [flooded] = await flooding(room, 1);
  const operator = await room.stack.identityFor('human-control', 'operator');
  using data = await RawConnection.open(room.stack.endpoints.data, operator);
  const look = data.call(present);
  look.send(presentOpen(flooded!.worker, { windowBytes: 100_000, holdLimitMs: 1_000 }));
  await look.heard(1);
  await flooded!.run.possession.write(Buffer.from('go\n'));
  const events = () => look.messages.map((message) => PresentResponse.decode(message).event);
  const shown = (): number =>
    events().reduce(
      (sum, event) => sum + (event?.$case === 'output' ? event.value.payload.length : 0),
      0,
    );
  const closed = await eventually(
    'it is closed, or shown too much',
    () => shown() > 100_000 || events().find((event) => event?.$case === 'closed'),
    20_000,
  );
  expect(closed).toMatchObject({ value: { reason: CloseReason.LAGGING } });
  expect(shown()).toBe(100_000);
  await stillServes(room, run);
  flooded!.run.possession.abort();
  flooded!.run.bind.close();
}

/** A connection whose window is shut: not a byte of any answer can leave. */
async function asleep(stack: Stack, plane: Plane): Promise<RawConnection> {
  const control = await stack.identityFor('service', 'control');
  const shut = { settings: { initialWindowSize: 0 } };
  return await RawConnection.open(stack.endpoints[plane], control, shut);
}

function follows(connection: RawConnection, path: string): RawCall {
  const call = connection.call(path);
  call.send(new Uint8Array());
  call.finish();
  return call;
}

/** Fifteen hundred facts behind fifty followers that take none of them. */
async function followersAsleep(subject: Subject): Promise<void> {
  await using room = await Room.open(subject);
  await using run = await room.runs(echo);
  await run.shows(/ready/);
  const { stack, operator } = room;
  using authority = await asleep(stack, 'authority');
  for (let count = 0; count < 50; count += 1) {
    follows(authority, authorityMethod('Tail'));
    follows(authority, authorityMethod('FollowStatus'));
  }
  const names = Array.from({ length: 20 }, (_, index) => `turn-${index}`);
  const workers = await Promise.all(names.map((name) => operator.opens(name)));
  const grown = growthOf(stack, 'authority');
  const turning = workers.map(async (worker) => {
    for (let generation = 1n; generation <= 25n; generation += 1n) {
      await operator.workers.close({ ...worker, generation });
      await operator.workers.reopen({ ...worker, generation });
    }
  });
  await within('fifteen hundred facts', 60_000, Promise.all(turning));
  expect(grown()).toBeLessThan(32 * MIB);
  await stillServes(room, run);
}

/** Whoever wakes up is told what is true now, whatever was on its way meanwhile. */
async function statusAsleep(subject: Subject): Promise<void> {
  await using room = await Room.open(subject);
  await using run = await room.runs(echo);
  await run.shows(/ready/);
  using data = await asleep(room.stack, 'data');
  const follower = follows(data, dataStatus);
  const look = await room.operator.looksAt(room.worker);
  // Long enough for the change to be due while the first status is on its way.
  await delay(300);
  data.session.settings({ initialWindowSize: 65_535 });
  await eventually(
    'the newest status comes',
    () => {
      const newest = FollowStatusResponse.decode(follower.messages.at(-1) ?? Buffer.alloc(0));
      return newest.terminals.some(({ presented }) => presented);
    },
    5_000,
  );
  await look.presentation.detach();
  await stillServes(room, run);
}

/** Lets its program write without end, asks for what is refused over and over, and reads none of it. */
async function neverListen(subject: Subject): Promise<void> {
  await using room = await Room.open(subject);
  await using run = await room.runs(echo);
  await run.shows(/ready/);
  const { stack, operator } = room;
  const worker = await operator.opens('mallory');
  using bind = await boundAgent(stack, await operator.identityOf('mallory'));
  await new Workers(bind.authority).occupy(worker);
  using data = await RawConnection.open(stack.endpoints.data, bind.identity);
  using authority = await RawConnection.open(stack.endpoints.authority, bind.identity);
  const typing = data.call(possess);
  typing.send(possessOpen(worker, { argv: raw('exec cat /dev/zero') }));
  const binding = authority.call(authorityMethod('Bind'));
  for (const call of [typing, binding]) {
    await call.heard(1);
    call.stopReading();
  }
  const resize = { request: 1n, geometry: { rows: 0, cols: 0 } };
  const badResize = framed(
    PossessRequest.encode({ operation: { $case: 'resize', value: resize } }).finish(),
  );
  const renew = { certificateRequest: Buffer.from('none') };
  const badRenewal = framed(
    BindRequest.encode({ operation: { $case: 'renew', value: renew } }).finish(),
  );
  const grown = { data: growthOf(stack, 'data'), authority: growthOf(stack, 'authority') };
  const many = 100_000;
  typing.sendBytes(Buffer.concat(Array.from({ length: many }, () => badResize)));
  binding.sendBytes(Buffer.concat(Array.from({ length: many }, () => badRenewal)));
  // What is read of it is read in no time; what is not stays where it is.
  await delay(2_000);
  expect(grown.data()).toBeLessThan(20 * MIB);
  expect(grown.authority()).toBeLessThan(20 * MIB);
  await stillServes(room, run);
  // Nothing was lost of it either: once it listens it hears every answer.
  typing.stream.resume();
  await typing.heard(5_000);
}

describe('hostile readers', () => {
  at(ownProcesses, () => {
    test('one that never reads costs its window and a mebibyte, twenty twenty times that', () =>
      neverRead(product));
  });
  test('one that never acknowledges is shown its window and closed as lagging', () =>
    neverAcknowledge(product));
  falsifier(
    'W1 the window',
    {
      file: 'services/data/domain/send-window.ts',
      find: 'return window.ackedSeq + window.windowBytes;',
      replace: 'return window.ackedSeq + window.windowBytes * 1000n;',
    },
    neverAcknowledge,
  );
  at(ownProcesses, () => {
    test('nothing piles up behind followers that sleep', () => followersAsleep(product));
  });
  test('a follower of the status that wakes up is told the newest', () => statusAsleep(product));
  falsifier(
    'the status waits for the one on its way',
    {
      file: 'services/data/rpc/follow-status.ts',
      find: /(?<=this\.#isOnItsWay = false;\s+)this\.#tellWhatIsDue\(\);/,
      replace: '',
    },
    statusAsleep,
  );
  at(ownProcesses, () => {
    test('one that asks and never listens is not read either', () => neverListen(product));
  });
  falsifier(
    'who reads no answer is not read',
    {
      file: 'services/chassis/server-stream.ts',
      find: 'this.backlog > this.#untakenMax',
      replace: 'false',
    },
    neverListen,
  );
});
