/** Streams opened, dropped and crowded as nobody honest would: nobody else is worse off, and nothing is left of them. */
import { describe, expect, test } from 'vitest';
import type { Designation } from '#client/presentation.js';
import { Workers } from '#client/workers.js';
import { PossessRequest, PossessResponse } from '#gen/wheelhouse/data/v1/data.js';
import { at, ownProcesses } from '../stack/depth.js';
import { eventually, within } from '../stack/eventually.js';
import { falsifier, type Subject } from '../stack/falsifier.js';
import { type AgentRun, boundAgent, type Look } from './actors.js';
import {
  nameOf,
  outputAck,
  possessOpen,
  presentOpen,
  type RawCall,
  RawConnection,
} from './hostile-client.js';
import { echo, growthOf, stillServes } from './hostile-room.js';
import { product, Room } from './room.js';

const MIB = 1024 * 1024;
const present = '/wheelhouse.data.v1.DataService/Present';
const possess = '/wheelhouse.data.v1.DataService/Possess';
const bind = '/wheelhouse.authority.v1.AuthorityService/Bind';

/** A look that was there before goes on: it shows what is typed now. */
async function stillLooks(look: Look, run: AgentRun): Promise<void> {
  await run.possession.write(Buffer.from('still here\n'));
  const shown = eventually('the look goes on', () => look.received.text === 'still here\n');
  const first = await Promise.race([shown.then(() => 'shown'), look.ended.then(() => 'ended')]);
  expect(first).toBe('shown');
  await look.presentation.detach();
}

/** Another agent, seated at a worker of its own. */
async function mallory(
  room: Room,
): Promise<Disposable & { data: RawConnection; worker: Designation }> {
  const { stack, operator } = room;
  const worker = await operator.opens('mallory');
  const bound = await boundAgent(stack, await operator.identityOf('mallory'));
  await new Workers(bound.authority).occupy(worker);
  const data = await RawConnection.open(stack.endpoints.data, bound.identity);
  const dispose = (): void => {
    data[Symbol.dispose]();
    bound[Symbol.dispose]();
  };
  return { data, worker, [Symbol.dispose]: dispose };
}

async function closed(call: RawCall): Promise<void> {
  const isClosed = (message: Buffer): boolean =>
    PossessResponse.decode(message).event?.$case === 'closed';
  await eventually('the possession closes', () => call.messages.some(isClosed));
}

/** What an agent still sends when its possession has closed is nobody's question. */
async function lateInput(subject: Subject): Promise<void> {
  await using room = await Room.open(subject);
  await using run = await room.runs(echo);
  await run.shows(/ready/);
  const look = await room.operator.looksAt(room.worker);
  using agent = await mallory(room);
  const late = [
    PossessRequest.encode({
      operation: { $case: 'input', value: { seq: 0n, payload: Buffer.from('late') } },
    }).finish(),
    PossessRequest.encode({
      operation: { $case: 'resize', value: { request: 1n, geometry: { rows: 3, cols: 3 } } },
    }).finish(),
    outputAck(0n),
  ];
  for (const wrong of [outputAck(1n), undefined]) {
    const call = agent.data.call(possess);
    call.send(possessOpen(agent.worker, { argv: wrong === undefined ? ['true'] : ['cat'] }));
    await call.heard(1);
    if (wrong !== undefined) {
      call.send(wrong);
    }
    await closed(call);
    for (const message of late) {
      call.send(message);
    }
    const { length } = call.messages;
    call.finish();
    expect(nameOf(await call.ended())).toBe('OK');
    expect(call.messages.length).toBe(length);
  }
  await stillLooks(look, run);
  await stillServes(room, run);
}

/** An agent asks for more things at once than authority gives numbers for: only it waits. */
async function crowd(subject: Subject): Promise<void> {
  await using room = await Room.open(subject, {
    authority: { WHEELHOUSE_CALLERS_PER_NODE_MAX: '64' },
  });
  await using run = await room.runs(echo);
  await run.shows(/ready/);
  const look = await room.operator.looksAt(room.worker);
  using agent = await mallory(room);
  // While authority answers nobody they are all there together.
  await room.stack.pause('authority');
  const calls = Array.from({ length: 200 }, () => {
    const call = agent.data.call(possess);
    call.send(possessOpen(room.worker, { argv: ['true'] }));
    return call;
  });
  await eventually('they have arrived', () => agent.data.session.state.outboundQueueSize === 0);
  await room.stack.resume('authority');
  const answers = await within(
    'all answers',
    30_000,
    Promise.all(calls.map((call) => call.answered())),
  );
  expect(new Set(answers)).toEqual(new Set(['WORKER_NOT_YOURS']));
  await stillLooks(look, run);
  await stillServes(room, run);
}

/**
 * As many calls as a day has, in a few seconds: what each left behind would be seen in the sum.
 *
 * Each connection goes with its last calls hardly begun: some begin where it is not there any more.
 */
async function thousands(subject: Subject): Promise<void> {
  const small = { NODE_OPTIONS: '--max-old-space-size=128 --max-semi-space-size=2' };
  await using room = await Room.open(subject, { data: small, authority: small });
  await using run = await room.runs(echo);
  await run.shows(/ready/);
  const { stack, worker } = room;
  const operator = await stack.identityFor('human-control', 'operator');
  const open = presentOpen(worker, { replace: true });

  /** One after another on one connection, at most a hundred at a time. */
  const calls = async (
    path: string,
    count: number,
    act: (call: RawCall, index: number) => void,
  ): Promise<void> => {
    const endpoint = stack.endpoints[path === present ? 'data' : 'authority'];
    using connection = await RawConnection.open(endpoint, operator);
    for (let index = 0; index < count; index += 1) {
      const call = connection.call(path);
      act(call, index);
      if (index % 100 === 99) {
        await within('its end', 30_000, call.closed);
      }
    }
    expect(connection.isOpen).toBe(true);
  };
  const politely = (call: RawCall): void => {
    call.send(open);
    call.finish();
  };
  /** Half before their first message, half of the others with an answer that nobody reads. */
  const rudely = (call: RawCall, index: number): void => {
    if (index % 2 === 0) {
      call.send(open);
    }
    if (index % 4 === 0) {
      call.stopReading();
      call.stream.once('response', () => call.cancel());
    } else {
      call.cancel();
    }
  };
  const rounds = async (count: number): Promise<void> => {
    for (let round = 0; round < count; round += 1) {
      // More cancellations in a burst, and HTTP/2 itself ends the connection.
      await calls(present, 800, rudely);
      await calls(bind, 200, (call) => call.cancel());
    }
  };

  const logged = stack.log('data').length;
  await rounds(4);
  await calls(present, 2_000, politely);
  const grown = { data: growthOf(stack, 'data'), authority: growthOf(stack, 'authority') };
  await calls(present, 10_000, politely);
  await rounds(12);
  // Some twenty thousand calls since then. A kilobyte of each, kept, would be as much.
  expect(grown.data()).toBeLessThan(20 * MIB);
  expect(grown.authority()).toBeLessThan(20 * MIB);
  expect(stack.log('data').length).toBe(logged);
  await stillServes(room, run);
}

describe('hostile streams', () => {
  test('what comes after a possession has closed costs nobody else anything', () =>
    lateInput(product));
  falsifier(
    'a closed possession asks nothing',
    [
      {
        file: 'services/data/rpc/possessor.ts',
        find: /(?<=hear\(\{ operation \}\) \{\s+)if \(this\.isClosed\)/,
        replace: 'if (false)',
      },
      {
        file: 'services/data/rpc/possessor.ts',
        find: /(?<=#askInput\(question\) \{[^}]+\}[^}]+)if \(this\.isClosed\)/,
        replace: 'if (false)',
      },
    ],
    lateInput,
  );
  test('one that asks for hundreds of things at once has one number', () => crowd(product));
  falsifier(
    'one number for a certificate',
    {
      file: 'services/data/adapters/introduced-callers.ts',
      find: 'if (known !== undefined)',
      replace: 'if (false)',
    },
    crowd,
  );
  at(ownProcesses, () => {
    test('twenty thousand calls, cancelled or not, leave nothing behind', () => thousands(product));
  });
});
