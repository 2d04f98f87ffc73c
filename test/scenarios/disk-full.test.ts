/**
 * Authority's disk full: nothing new begins, what ends ends and is remembered, nothing that was
 * acknowledged is lost, and with room again all is as before.
 */
import { rmSync, statfsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeEach, describe, expect, type TestContext, test } from 'vitest';
import { RefusedError } from '#client/call-errors.js';
import { designationOf } from '#client/workers.js';
import { WorkerState } from '#gen/wheelhouse/authority/v1/authority.js';
import { eventually } from '../stack/eventually.js';
import { falsifier, type Subject } from '../stack/falsifier.js';
import { needs } from '../stack/machine.js';
import { Operator } from './actors.js';
import { exactToItsEnd, expectNoBugs, nothingLeft, reasonOf } from './aftermath.js';
import { countingSlowly } from './counting.js';
import { took } from './figure.js';
import { product, Room } from './room.js';

/** Room for a store, above the low water of 64 MiB. */
const DISK_BYTES = 96 * 1024 * 1024;

/** Takes every byte that is left. */
function fill(folder: string): { readonly free: () => void } {
  const filler = join(folder, 'filler');
  const block = Buffer.alloc(1024 * 1024);
  try {
    for (;;) {
      writeFileSync(filler, block, { flag: 'a' });
    }
  } catch (error) {
    expect(error).toMatchObject({ code: 'ENOSPC' });
  }
  expect(statfsSync(folder).bavail).toBe(0);
  return { free: () => rmSync(filler) };
}

async function refusal(call: Promise<unknown>): Promise<string> {
  return await call.then(
    () => 'granted',
    (error: unknown) => (error instanceof RefusedError ? error.refusal.reason : String(error)),
  );
}

async function diskFull(subject: Subject, context?: TestContext): Promise<void> {
  await using room = await Room.open(subject, {}, { storeBytes: DISK_BYTES });
  const { stack, operator, worker } = room;
  const spare = await operator.opens('spare');
  await operator.workers.close(spare);
  const run = await room.runs(countingSlowly);
  const look = await operator.looksAt(worker);
  await look.shows(/\d/);
  const disk = fill(join(stack.stateDir, 'authority'));

  const asked = { name: 'new', workspace: stack.workspace };
  expect(await refusal(operator.workers.open(asked))).toBe('JOURNAL_FULL');
  expect(await refusal(operator.workers.reopen(spare))).toBe('JOURNAL_FULL');
  const before = look.received.bytes;
  await eventually('it is shown on', () => look.received.bytes > before + 100_000n);
  expect(await refusal(operator.workers.close(worker))).toBe('granted');
  expect(reasonOf(await exactToItsEnd(look))).toBe('WORKER_CLOSED');
  expect(reasonOf(await exactToItsEnd(run))).toBe('WORKER_CLOSED');
  await run[Symbol.asyncDispose]();
  expect(await refusal(operator.looksAt(worker))).toBe('WORKER_CLOSED');

  const since = performance.now();
  disk.free();
  await eventually('it can be opened', () => operator.workers.open(asked));
  took(context, 'a full disk freed, the next worker opened after', since);
  await stack.crash('authority');
  await stack.restart('authority');
  await stack.joined();
  await using again = await Operator.at(stack);
  const listed = await again.workers.list();
  expect(listed.map(({ name, state }) => [name, state])).toEqual([
    ['demo', WorkerState.CLOSED],
    ['spare', WorkerState.CLOSED],
    ['new', WorkerState.VACANT],
  ]);
  const reopened = designationOf(await again.workers.reopen(worker));
  expect(reopened.generation).toBe(worker.generation + 1n);
  await nothingLeft(stack);
  expectNoBugs(stack);
}

describe('a full disk', () => {
  beforeEach((context) => needs(context, 'root', 'linux'));
  test('E2 refuses what begins, ends what ends, and loses nothing', (context) =>
    diskFull(product, context));
  falsifier(
    'E2 closing has room of its own',
    {
      file: 'services/authority/adapters/journal.ts',
      find: 'this.#ballast.give() && ',
      replace: 'false && ',
    },
    (subject) => diskFull(subject),
  );
});
