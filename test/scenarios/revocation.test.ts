/** Laws P5–P7 and E1 on real processes: what is produced after a revocation is never released. */
import { setTimeout as delay } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { RefusedError } from '#client/call-errors.js';
import { eventually, within } from '../stack/eventually.js';
import { falsifier, type Subject } from '../stack/falsifier.js';
import { Operator } from './actors.js';
import { product, Room } from './room.js';
import { newest, ticking } from './ticking.js';

/** Nothing that the program printed after authority had stopped is shown. */
async function authorityPaused(subject: Subject): Promise<void> {
  await using room = await Room.open(subject);
  const { run, look } = await ticking(room);
  await room.stack.pause('authority');
  const stoppedAt = process.hrtime.bigint();
  await delay(500);
  expect(newest(look)).toBeLessThan(stoppedAt);
  await room.stack.resume('authority');
  await eventually('authority is asked again', () => newest(look) > stoppedAt);
  await look.presentation.detach();
  await run[Symbol.asyncDispose]();
}

/** A closing that a paused node cannot acknowledge says so, and P6 holds when the node goes on. */
async function dataPausedAroundClose(subject: Subject): Promise<void> {
  await using room = await Room.open(subject);
  const { look } = await ticking(room);
  await room.stack.pause('data');
  const closing = await room.operator.workers.close(room.worker);
  const returnedAt = process.hrtime.bigint();
  expect(closing.isFenced).toBe(false);
  await expect(room.operator.workers.reopen(room.worker)).rejects.toMatchObject({
    refusal: { reason: 'WORKER_CLOSING' },
  });
  await delay(300);
  await room.stack.resume('data');
  await within('the look ends', 20_000, look.ended);
  expect(newest(look)).toBeLessThan(returnedAt);
  await eventually('the closing finishes', async () => {
    const [worker] = await room.operator.workers.list();
    return worker?.state === 5;
  });
  await room.operator.workers.reopen(room.worker);
}

/** The operator's own life ends: an idle stream closes by the fence, a busy one releases nothing more. */
async function controlUnbound(subject: Subject): Promise<void> {
  await using room = await Room.open(subject);
  const { run, look } = await ticking(room);
  room.operator.bind.close();
  await using again = await Operator.at(room.stack, 'operator');
  await eventually('nobody watches', async () => (await again.workers.list())[0]?.state === 2);
  const unboundAt = process.hrtime.bigint();
  const end = await within('the look ends', 10_000, look.ended);
  expect(newest(look)).toBeLessThan(unboundAt);
  expect(end.kind === 'closed' ? end.reason : 'CONTROL_UNBOUND').toBe('CONTROL_UNBOUND');
  await run[Symbol.asyncDispose]();
}

async function idleControlUnbound(subject: Subject): Promise<void> {
  await using room = await Room.open(subject);
  await using run = await room.runs(['sh', '-c', 'echo ready; exec sleep 600']);
  await run.shows(/ready/);
  const look = await room.operator.looksAt(room.worker);
  room.operator.bind.close();
  const end = await within('the idle look ends', 10_000, look.ended);
  expect(end).toMatchObject({ kind: 'closed', reason: 'CONTROL_UNBOUND' });
}

/** The closing returns when the node has acknowledged: from then on nothing is shown. */
async function closedUnderFlood(subject: Subject): Promise<void> {
  await using room = await Room.open(subject);
  await using _run = await room.runs(['sh', '-c', 'stty raw; exec yes'], { isHeadless: true });
  const look = await room.operator.looksAt(room.worker);
  await look.shows(/y\ny\n/);
  const closing = await room.operator.workers.close(room.worker);
  expect(closing.isFenced).toBe(true);
  const end = await within('the look ends', 10_000, look.ended);
  const shown = look.received.bytes;
  await delay(300);
  expect(look.received.bytes).toBe(shown);
  expect(end.kind === 'closed' ? end.reason : 'lost').toMatch(/WORKER_CLOSED|lost/);
}

/** A reader that takes nothing: the closing does not wait for it, and what was queued for it is cut off. */
async function closedBehindStalled(subject: Subject): Promise<void> {
  await using room = await Room.open(subject);
  await using _run = await room.runs(['sh', '-c', 'stty raw; exec yes'], { isHeadless: true });
  const look = await room.operator.looksAt(room.worker, { holdLimitMs: 30_000 });
  await look.shows(/y\ny\n/);
  look.stalls();
  await look.standsStill();
  const closing = await room.operator.workers.close(room.worker);
  expect(closing.isFenced).toBe(true);
  look.goesOn();
  const end = await within('the look is cut off', 10_000, look.ended);
  expect(end.kind).toBe('lost');
}

/** E1: authority away for longer than the terminal may be held. */
async function authorityAway(subject: Subject): Promise<void> {
  await using room = await Room.open(subject, { data: { WHEELHOUSE_RING_BYTES: '4096' } });
  const run = await room.runs(['sh', '-c', 'stty raw; while :; do date +%s%N; done'], {
    isHeadless: true,
  });
  const look = await room.operator.looksAt(room.worker, { holdLimitMs: 1_000 });
  await look.shows(/\d+\n/);
  await room.stack.pause('authority');
  const end = await within('the look ends', 20_000, look.ended);
  expect(end).toMatchObject({ kind: 'closed', reason: 'AUTHORITY_UNREACHABLE' });
  const refused = await room.operator.looksAt(room.worker).then(
    () => 'granted',
    (error: unknown) => (error instanceof RefusedError ? error.refusal.reason : 'unanswered'),
  );
  expect(['AUTHORITY_UNREACHABLE', 'unanswered']).toContain(refused);
  await room.stack.resume('authority');
  await run[Symbol.asyncDispose]();
}

/** Restart of authority: presentations close by name, agents go on in the same terminal. */
async function authorityRestarts(subject: Subject): Promise<void> {
  await using room = await Room.open(subject);
  await using run = await room.runs(['sh', '-c', 'stty raw -echo; echo ready; exec cat']);
  await run.shows(/ready/);
  const look = await room.operator.looksAt(room.worker);
  await room.stack.crash('authority');
  await room.stack.restart('authority');
  const end = await within('the look ends', 20_000, look.ended);
  expect(end).toMatchObject({ kind: 'closed', reason: 'WORLD_RESTARTED' });
  await within('the agent types on', 30_000, run.possession.write(Buffer.from('still here\n')));
  await run.shows(/still here/);
  await using again = await Operator.at(room.stack, 'operator');
  const next = await eventually('the operator looks again', () => again.looksAt(room.worker));
  expect(next.presentation.opening.outSeq).toBe(run.received.bytes);
  await next.presentation.detach();
}

const withoutResolve = {
  file: 'services/data/domain/presentation.ts',
  find: 'produced(presentation.reader, input.producedSeq, input.end)',
  replace:
    '{ ...produced(presentation.reader, input.producedSeq, input.end), coveredSeq: input.producedSeq }',
};

describe('revocation', () => {
  test('P6 with authority stopped nothing newer is shown', () => authorityPaused(product));
  falsifier('P6 resolve before release', withoutResolve, authorityPaused);

  test('P7 a node paused around a close is fenced by disconnect, and shows nothing newer', () =>
    dataPausedAroundClose(product));
  // Without the fence too: it waits in the paused node's socket, and may be heard first.
  falsifier(
    'P6 after a pause',
    [
      withoutResolve,
      {
        file: 'services/data/adapters/authority-link.ts',
        find: 'return this.#fence(message.value);',
        replace: 'return;',
      },
    ],
    dataPausedAroundClose,
  );

  test('P5 the end of the operator’s life closes a busy presentation', () =>
    controlUnbound(product));
  test('P5 an idle presentation closes by the fence', () => idleControlUnbound(product));
  falsifier(
    'P5 fence at the end of a peer',
    {
      file: 'services/authority/domain/presence.ts',
      find: "peer.role === 'human-control'\n        ?",
      replace: 'false ?',
    },
    idleControlUnbound,
  );

  test('P7 closing under flood is fenced, and nothing is shown afterwards', () =>
    closedUnderFlood(product));
  test('P7 a fence never waits for a reader: a stalled one is cut off', () =>
    closedBehindStalled(product));
  falsifier(
    'P7 reset of what is queued',
    { file: 'services/data/rpc/presenter.ts', find: 'this.#parts.stream.reset();', replace: '' },
    closedBehindStalled,
  );
  test('E1 authority away for longer than the hold closes as authority-unreachable', () =>
    authorityAway(product));
  falsifier(
    'E1 nothing without authority',
    [
      withoutResolve,
      {
        file: 'services/data/domain/presentation.ts',
        find: 'if (presentation.isAuthorityAway) {',
        replace: 'if (false) {',
      },
    ],
    authorityAway,
  );
  test('P5 a restart of authority closes presentations, and the agent goes on', () =>
    authorityRestarts(product));
});
