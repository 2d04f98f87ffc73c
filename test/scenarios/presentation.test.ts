/** Laws P4, P5, P8 and P10, E3 and E4 on real processes, as far as the nine falsifiers leave them open. */
import { describe, expect, test } from 'vitest';
import { RefusedError, UnreachableError } from '#client/call-errors.js';
import type { StreamEnd } from '#client/stream-end.js';
import { eventually, within } from '../stack/eventually.js';
import { falsifier, type Subject } from '../stack/falsifier.js';
import { AgentRun as Agent, type AgentRun, Operator, raw } from './actors.js';
import { product, Room } from './room.js';

async function refusalFrom(call: Promise<unknown>): Promise<string> {
  return await call.then(
    () => 'granted',
    (error: unknown) => (error instanceof RefusedError ? error.refusal.reason : String(error)),
  );
}

function reasonOf(end: StreamEnd): string {
  return end.kind === 'closed' ? end.reason : end.kind;
}

async function atWork(room: Room): Promise<AgentRun> {
  const run = await room.runs(raw('echo ready; exec cat'));
  await run.shows(/ready/);
  return run;
}

async function oneObserver(subject: Subject): Promise<void> {
  await using room = await Room.open(subject);
  await using run = await atWork(room);
  const first = await room.operator.looksAt(room.worker);
  expect(await refusalFrom(room.operator.looksAt(room.worker))).toBe('PRESENTATION_EXISTS');
  // The same operator from another process: another connection, another Bind, the same peer.
  await using elsewhere = await Operator.at(room.stack);
  expect(await refusalFrom(elsewhere.looksAt(room.worker))).toBe('PRESENTATION_EXISTS');
  await run.possession.write(Buffer.from('to the first\n'));
  await first.shows(/to the first/);
  const second = await elsewhere.looksAt(room.worker, { replace: true });
  expect(reasonOf(await within('the first ends', 10_000, first.ended))).toBe('REPLACED');
  await run.possession.write(Buffer.from('to the second\n'));
  await second.shows(/to the second/);
  expect(first.received.text).not.toContain('second');
}

async function openedByStays(subject: Subject): Promise<void> {
  await using room = await Room.open(subject);
  const { stack, worker } = room;
  const { name } = (await room.operator.workers.list())[0] ?? {};
  expect(name).toBe('demo');
  room.operator.bind.close();
  const bob = await eventually('the controls are free', () => Operator.at(stack, 'bob'));
  expect((await bob.workers.close(worker)).isFenced).toBe(true);
  expect(await refusalFrom(bob.workers.reopen(worker))).toBe('WORKER_NOT_OPENED_BY_CALLER');
  await bob[Symbol.asyncDispose]();
  await using again = await eventually('the controls are free', () => Operator.at(stack));
  const reopened = await again.workers.reopen(worker);
  expect(reopened.openedBy).toBe('operator');
  const now = { workerRef: reopened.workerRef, generation: reopened.workerGeneration };
  await using run = await Agent.starts(stack, room.agent, now, raw('echo ready; exec cat'));
  const look = await again.looksAt(now);
  await run.possession.write(Buffer.from('mine\n'));
  await look.shows(/mine/);
}

/** The agent's own life ends while its terminal goes on: nobody looks on, and it may come back. */
async function agentUnbound(subject: Subject): Promise<void> {
  await using room = await Room.open(subject, {
    authority: { WHEELHOUSE_REBIND_GRACE_MS: '8000' },
  });
  const run = await atWork(room);
  const look = await room.operator.looksAt(room.worker);
  run.bind.close();
  // By the fence, not by the end of the grace, which is twice as far away.
  expect(reasonOf(await within('the look ends', 4_000, look.ended))).toBe('AGENT_UNBOUND');
  expect(await refusalFrom(room.operator.looksAt(room.worker))).toBe('LOCUS_NOT_OCCUPIED');
  const end = await within('the grace is over', 20_000, run.ended);
  expect(reasonOf(end)).toBe('AGENT_UNBOUND');
  await using again = await room.runs(raw('echo again; exec cat'));
  await again.shows(/again/);
}

/** Presentations first, then the possession: by the time the agent hears of it nobody looks. */
async function closingOrder(subject: Subject): Promise<void> {
  await using room = await Room.open(subject);
  await using run = await atWork(room);
  const look = await room.operator.looksAt(room.worker);
  const order: string[] = [];
  const ended = [
    look.ended.then(() => order.push('presentation')),
    run.ended.then(() => order.push('possession')),
  ];
  await room.operator.workers.close(room.worker);
  await within('both end', 10_000, Promise.all(ended));
  expect(order).toEqual(['presentation', 'possession']);
}

/** A call that got no answer is a fault, and never looks like a ruling. */
async function faultIsNoRefusal(subject: Subject): Promise<void> {
  await using room = await Room.open(subject);
  await room.stack.crash('data');
  const look = await room.operator.looksAt(room.worker).catch((error: unknown) => error);
  expect(look).toBeInstanceOf(UnreachableError);
  const watch = await room.stack.wheelhouse(['--as', 'human-control/operator', 'watch', 'demo']);
  expect({ code: watch.code, isRefused: /refused:/.test(watch.stderr) }).toEqual({
    code: 4,
    isRefused: false,
  });
  await room.stack.restart('data');
  const refusal = await eventually('data is back', async () => {
    const name = await refusalFrom(room.operator.looksAt(room.worker));
    return name === 'LOCUS_NOT_OCCUPIED' ? name : undefined;
  });
  expect(refusal).toBe('LOCUS_NOT_OCCUPIED');
}

describe('presentations', () => {
  test('P10 one observer: a second is refused presentation-exists, and replaces when it says so', () =>
    oneObserver(product));
  falsifier(
    'P10 one observer',
    {
      file: 'services/authority/domain/present.ts',
      find: "refused('PRESENTATION_EXISTS'",
      replace: "granted('PRESENTATION_EXISTS'",
    },
    oneObserver,
  );

  test('P4 closing is open to every operator, looking and reopening to who opened', () =>
    openedByStays(product));
  falsifier(
    'P4 reopen by opener',
    {
      file: 'services/authority/domain/workers.ts',
      find: 'if (openedBy !== command.asker.name)',
      replace: 'if (false)',
    },
    openedByStays,
  );

  test('P5 the end of the agent’s life closes the presentation agent-unbound', () =>
    agentUnbound(product));
  falsifier(
    'P5 a seat whose agent is gone',
    {
      file: 'services/authority/domain/presence.ts',
      find: "(each) => each.workerRef === workerRef, 'AGENT_UNBOUND'",
      replace: "() => false, 'AGENT_UNBOUND'",
    },
    agentUnbound,
  );

  test('P7 presentations end before the possession', () => closingOrder(product));
  falsifier(
    'P7 order',
    [
      {
        file: 'services/authority/domain/closing.ts',
        find: "const { state, effects } = fence('PRESENTATIONS');",
        replace: "const { state, effects } = fence('POSSESSION');",
      },
      {
        file: 'services/data/carriers.ts',
        find: 'carrier.fencePresentations(reason)',
        replace: 'Promise.resolve()',
      },
      {
        file: 'services/data/carrier.ts',
        find: /this\.#presenter\?\.end\(reason\);\s*this\.#isReleased = true;/,
        replace:
          'const presenter = this.#presenter; setTimeout(() => presenter?.end(reason), 500); this.#isReleased = true;',
      },
    ],
    closingOrder,
  );

  test('E3 a call without an answer is a fault, not a refusal', () => faultIsNoRefusal(product));
  falsifier(
    'E3 a fault is no refusal',
    {
      file: 'clients/typescript/call-errors.ts',
      find: 'const refusal = metadata && refusalOf({ metadata });',
      replace:
        "const refusal = (metadata && refusalOf({ metadata })) ?? { reason: 'OWNER_UNREACHABLE', facts: {} };",
    },
    faultIsNoRefusal,
  );
});
