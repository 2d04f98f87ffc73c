/** Operators who would do more than look, watchers of every size, and agents that know names: none of it moves anything. */
import { describe, expect, test } from 'vitest';
import { readIdentity } from '#chassis/identity-files.js';
import { connect } from '#client/connect.js';
import type { Designation } from '#client/presentation.js';
import { OccupyRequest, type TailResponse } from '#gen/wheelhouse/authority/v1/authority.js';
import { PossessRequest, PresentResponse } from '#gen/wheelhouse/data/v1/data.js';
import { CloseReason } from '#gen/wheelhouse/refusal/v1/refusal.js';
import { eventually } from '../stack/eventually.js';
import { falsifier, type Subject } from '../stack/falsifier.js';
import type { Stack } from '../stack/stack.js';
import { boundAgent } from './actors.js';
import {
  nameOf,
  outputAck,
  possessOpen,
  presentOpen,
  RawConnection,
  type RawEnd,
} from './hostile-client.js';
import { echo, loggedNoBug, stillServes } from './hostile-room.js';
import { product, Room } from './room.js';

const present = '/wheelhouse.data.v1.DataService/Present';
const possess = '/wheelhouse.data.v1.DataService/Possess';
const occupy = '/wheelhouse.authority.v1.AuthorityService/Occupy';

/** What only an agent may send, as it would send it on its own stream. */
const actions = [
  PossessRequest.encode({
    operation: { $case: 'input', value: { seq: 0n, payload: Buffer.from('typed by a watcher\n') } },
  }).finish(),
  PossessRequest.encode({
    operation: { $case: 'resize', value: { request: 1n, geometry: { rows: 9, cols: 9 } } },
  }).finish(),
  // The end-of-input and interrupt keys, and operations that no build has yet.
  PossessRequest.encode({
    operation: { $case: 'input', value: { seq: 0n, payload: Buffer.from([3, 4, 26, 28]) } },
  }).finish(),
  Buffer.from([0x2a, 0x02, 0x08, 0x02]),
  Buffer.from([0x32, 0x00]),
];

/** A look acts on nothing: before it is open, while it is, and after it was closed. */
async function onlyLooks(subject: Subject): Promise<void> {
  await using room = await Room.open(subject);
  await using run = await room.runs([
    'sh',
    '-c',
    'echo ready; while read line; do stty size; done',
  ]);
  await run.shows(/ready/);
  const operator = await room.stack.identityFor('human-control', 'operator');
  using data = await RawConnection.open(room.stack.endpoints.data, operator);
  const look = data.call(present);
  const sendAll = (): void => {
    for (const message of actions) {
      look.send(message);
    }
  };
  sendAll();
  look.send(presentOpen(room.worker));
  await look.heard(1);
  sendAll();
  look.send(outputAck(2n ** 63n));
  const { event } = PresentResponse.decode(await look.heard(2));
  expect(event).toMatchObject({ value: { reason: CloseReason.PROTOCOL_VIOLATION } });
  sendAll();
  look.finish();
  expect(nameOf(await look.ended())).toBe('OK');
  const attempt = data.call(possess);
  attempt.send(possessOpen(room.worker, { argv: ['true'] }));
  expect(nameOf(await attempt.ended())).toBe('ROLE_NOT_AGENT');

  await run.possession.write(Buffer.from('\n'));
  await run.shows(/24 80/);
  expect(run.received.text.replaceAll('\r', '')).toBe('ready\n\n24 80\n');
  const [worker] = await room.operator.workers.list();
  expect(worker).toMatchObject({ name: 'demo', openedBy: 'operator', state: 2 });
  loggedNoBug(room.stack);
}

/** Watchers of two sizes, and a second operator: the program keeps the size its agent gave it. */
async function sizes(subject: Subject): Promise<void> {
  await using room = await Room.open(subject);
  const program = 'trap "echo RESIZED" WINCH; echo ready; while read line; do stty size; done';
  await using run = await room.runs(['bash', '-c', program]);
  await run.shows(/ready/);
  const { stack } = room;
  await stack.identityFor('human-control', 'bob');
  const watch = ['watch', 'demo', '--as', 'human-control/operator'];
  await using large = stack.start(watch, { tty: { cols: 120, rows: 40 } });
  await eventually(
    'it is watched',
    async () => (await room.operator.workers.list())[0]?.state === 3,
  );
  const second = await stack.wheelhouse(watch, { tty: { cols: 60, rows: 10 } });
  expect(second.code).toBe(3);
  expect(second.stdout.toString()).toContain('presentation-exists');
  const other = await stack.wheelhouse(['watch', 'demo', '--as', 'human-control/bob']);
  expect(other.code).toBe(3);
  expect(other.stderr).toContain('control-channel-occupied');
  for (const [cols, rows] of [
    [80, 24],
    [200, 50],
    [20, 5],
    [120, 40],
  ] as const) {
    large.resize(cols, rows);
    await run.possession.write(Buffer.from('\n'));
  }
  await using small = stack.start([...watch, '--replace'], { tty: { cols: 60, rows: 10 } });
  expect(await large.ended).toMatchObject({ code: 3 });
  await run.possession.write(Buffer.from('last\n'));
  await small.printed(/last\s+24 80/);
  const shown = run.received.text;
  expect(shown).not.toContain('RESIZED');
  expect(shown.match(/\d+ \d+/g)).toEqual(Array.from({ length: 5 }, () => '24 80'));
  loggedNoBug(stack);
}

/** Every name authority has given. */
async function allRefs(stack: Stack): Promise<readonly string[]> {
  const control = await stack.identityFor('service', 'control');
  using authority = connect(stack.endpoints.authority, 'authority', control);
  const call = authority.client.tail({ afterIndex: 0n });
  let text = '';
  call.on('error', () => undefined);
  call.on('data', ({ body }: TailResponse) => {
    text += body.toString();
  });
  const refs = await eventually('the names', () => {
    const found = new Set(text.match(/\b(pr|at|cr|lc|dn|wd)_[0-9a-f]+\b/g));
    return found.size > 4 && [...found].some((ref) => ref.startsWith('at_')) ? found : undefined;
  });
  call.cancel();
  return [...refs];
}

/** Whatever an agent names, and whether or not it exists, the answer is the same to the byte. */
async function namesAreWorthNothing(subject: Subject): Promise<void> {
  await using room = await Room.open(subject);
  await using run = await room.runs(echo);
  await run.shows(/ready/);
  const { stack, operator } = room;
  await operator.opens('eve');
  using eve = await boundAgent(stack, await operator.identityOf('eve'));
  const refs = await allRefs(stack);
  const named = [room.worker.workerRef, `wk_${'0'.repeat(32)}`, '', '../demo', 'demo', ...refs];
  const designations = named.flatMap((workerRef): Designation[] =>
    [1n, 2n].map((generation) => ({ workerRef, generation })),
  );
  using data = await RawConnection.open(stack.endpoints.data, eve.identity);
  using authority = await RawConnection.open(stack.endpoints.authority, eve.identity);
  const bob = await stack.identityFor('human-control', 'bob');
  using bobsData = await RawConnection.open(stack.endpoints.data, bob);
  using operatorsData = await RawConnection.open(
    stack.endpoints.data,
    readIdentity(stack.stateDir, 'human-control', 'operator'),
  );
  const asking = async (
    connection: RawConnection,
    path: string,
    open: Uint8Array,
  ): Promise<RawEnd> => {
    const call = connection.call(path);
    call.send(open);
    return await call.ended();
  };
  const asked: Readonly<Record<string, (worker: Designation) => Promise<RawEnd>>> = {
    WORKER_NOT_YOURS: (worker) => asking(data, possess, possessOpen(worker, { argv: ['true'] })),
    ROLE_NOT_HUMAN_CONTROL: (worker) => asking(data, present, presentOpen(worker)),
    CONTROL_CHANNEL_NOT_BOUND: (worker) => asking(bobsData, present, presentOpen(worker)),
  };
  for (const [reason, ask] of Object.entries(asked)) {
    const answers = await Promise.all(designations.map(ask));
    expect(answers[0]?.reason).toBe(reason);
    expect(new Set(answers.map((answer) => JSON.stringify(answer))).size).toBe(1);
  }
  const seats = await Promise.all(
    designations.map(({ workerRef, generation }) => {
      const request = { workerRef, expectedWorkerGeneration: generation };
      return authority.ask(occupy, OccupyRequest.encode(request).finish());
    }),
  );
  expect(seats[0]?.reason).toBe('WORKER_NOT_YOURS');
  expect(new Set(seats.map((answer) => JSON.stringify(answer))).size).toBe(1);
  // Nor do they mean anything to the operator: a page designates a worker, and nothing else.
  for (const workerRef of refs) {
    const end = await asking(operatorsData, present, presentOpen({ workerRef, generation: 1n }));
    expect(end.reason).toBe('WORKER_UNKNOWN');
  }
  await stillServes(room, run);
}

describe('hostile watchers', () => {
  test('C031 a look that sends everything else changes nothing', () => onlyLooks(product));
  test('C033 watchers of different size, and another operator, never resize', () => sizes(product));
  test('C038 knowing a name is worth nothing: existing and made up are told alike', () =>
    namesAreWorthNothing(product));
  falsifier(
    'C038 foreign and unknown are one to an agent',
    {
      file: 'services/authority/domain/occupancy.ts',
      find: 'worker === undefined || worker.actor !== command.asker.name',
      replace: 'worker === undefined',
    },
    namesAreWorthNothing,
  );
});
