/**
 * The network cut between each two parties, and healed: nobody is told, bytes are exact or the stream is
 * over, nothing is shown that authority could not have allowed, and everything is found again.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { describe, expect, type TestContext, test } from 'vitest';
import { eventually, within } from '../stack/eventually.js';
import { falsifier, type Subject } from '../stack/falsifier.js';
import { type AgentRun, Operator, raw } from './actors.js';
import { exactToItsEnd, expectNoBugs, reasonOf } from './aftermath.js';
import { countingSlowly } from './counting.js';
import { took } from './figure.js';
import { product, Room } from './room.js';
import { newest, ticking } from './ticking.js';

const cuttable = { isCuttable: true } as const;
/** Longer than a keepalive takes to give a peer up: 10 s and 5 s. */
const GIVEN_UP_MS = 25_000;

/** Shorter than a keepalive: what was under way arrives, and nothing was shown meanwhile. */
async function brieflyFromAuthority(subject: Subject, context?: TestContext): Promise<void> {
  await using room = await Room.open(subject, {}, cuttable);
  const { run, look } = await ticking(room);
  await room.stack.cut('authority', 'data');
  const cutAt = process.hrtime.bigint();
  await delay(1_500);
  expect(newest(look)).toBeLessThan(cutAt);
  const healedAt = performance.now();
  await room.stack.heal('authority', 'data');
  await eventually('authority is asked again', () => newest(look) > cutAt, GIVEN_UP_MS);
  took(context, 'authority and data cut for 1.5 s, shown again after', healedAt);
  await look.presentation.detach();
  await run[Symbol.asyncDispose]();
}

/** Longer: a node alone refuses, its agents' own output goes on, and it is found again. */
async function longFromAuthority(subject: Subject, context?: TestContext): Promise<void> {
  const settings = { data: { WHEELHOUSE_RING_BYTES: '4096' } };
  await using room = await Room.open(subject, settings, cuttable);
  await using run = await room.runs(raw('while :; do date +%s%N; sleep 0.01; done'));
  const look = await room.operator.looksAt(room.worker, { holdLimitMs: 1_000 });
  await look.shows(/\d+\n/);
  await room.stack.cut('authority', 'data');
  const end = await within('the look ends', GIVEN_UP_MS, look.ended);
  expect(reasonOf(end)).toBe('AUTHORITY_UNREACHABLE');
  const isNoticed = (): boolean => /does not answer/.test(room.stack.log('data'));
  await eventually('data has noticed', isNoticed, GIVEN_UP_MS);
  const before = run.received.bytes;
  await eventually('the agent reads on', () => run.received.bytes > before);
  const healedAt = performance.now();
  await room.stack.heal('authority', 'data');
  await eventually('it can be looked at', () => looksBriefly(room), GIVEN_UP_MS);
  took(context, 'authority and data cut until given up, looked at again after', healedAt);
  expectNoBugs(room.stack);
}

async function looksBriefly({ operator, worker }: Room): Promise<boolean> {
  const look = await operator.looksAt(worker);
  await look.presentation.detach();
  return true;
}

/** Neither the look nor the agent loses or repeats a byte over a cut that both outlive. */
async function brieflyFromClients(subject: Subject, context?: TestContext): Promise<void> {
  await using room = await Room.open(subject, {}, cuttable);
  const run = await room.runs(countingSlowly);
  const look = await room.operator.looksAt(room.worker, { holdLimitMs: 30_000 });
  await look.shows(/\d/);
  await room.stack.cut('client', 'data');
  await delay(1_500);
  const before = look.received.bytes;
  const healedAt = performance.now();
  await room.stack.heal('client', 'data');
  await eventually('it is shown on', () => look.received.bytes > before, GIVEN_UP_MS);
  took(context, 'clients and data cut for 1.5 s, shown again after', healedAt);
  await room.operator.workers.close(room.worker);
  await exactToItsEnd(look);
  expect(reasonOf(await exactToItsEnd(run))).toBe('WORKER_CLOSED');
  await run[Symbol.asyncDispose]();
}

/** An operator who cannot be heard is not bound any more: the look ends by the fence, wherever it is read. */
async function operatorCutOff(subject: Subject, context?: TestContext): Promise<void> {
  await using room = await Room.open(subject, {}, cuttable);
  const { run, look } = await ticking(room);
  await room.stack.cut('client', 'authority');
  const end = await within('the look ends', GIVEN_UP_MS, look.ended);
  expect(['CONTROL_UNBOUND', 'AGENT_UNBOUND', 'lost']).toContain(reasonOf(end));
  const shown = look.received.bytes;
  const healedAt = performance.now();
  await room.stack.heal('client', 'authority');
  await using again = await eventually(
    'the operator is back',
    () => Operator.at(room.stack, 'operator').catch(() => undefined),
    GIVEN_UP_MS,
  );
  took(context, 'clients and authority cut until given up, bound again after', healedAt);
  expect(look.received.bytes).toBe(shown);
  await goesOn(again, room, run);
}

/** The agent, cut off as well, is back within its grace, in the same terminal. */
async function goesOn(operator: Operator, room: Room, run: AgentRun): Promise<void> {
  const look = await eventually(
    'the agent is back, and looked at',
    () => operator.looksAt(room.worker),
    GIVEN_UP_MS,
  );
  await look.shows(/\d+\n/);
  await look.presentation.detach();
  await run[Symbol.asyncDispose]();
}

describe('the network cut', () => {
  test('P6 between authority and data, briefly: nothing is shown meanwhile, and it goes on', (context) =>
    brieflyFromAuthority(product, context));
  falsifier(
    'P6 across a cut',
    {
      file: 'services/data/domain/presentation.ts',
      find: 'produced(presentation.reader, input.producedSeq, input.end)',
      replace:
        '{ ...produced(presentation.reader, input.producedSeq, input.end), coveredSeq: input.producedSeq }',
    },
    brieflyFromAuthority,
  );
  test('E1 between authority and data, for long: looks end by name, agents read on, all is found again', (context) =>
    longFromAuthority(product, context));
  test('B2 between clients and data: no byte is lost or repeated', (context) =>
    brieflyFromClients(product, context));
  test('P5 between clients and authority: who cannot be heard is not bound', (context) =>
    operatorCutOff(product, context));
});
