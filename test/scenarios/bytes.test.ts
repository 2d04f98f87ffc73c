/** Laws B1–B8 on real processes: exact or closed. */
import { createHash } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { eventually, within } from '../stack/eventually.js';
import { falsifier, type Subject } from '../stack/falsifier.js';
import { type Look, raw } from './actors.js';
import { product, Room } from './room.js';

const MB = 1_000_000;

async function hundredMegabytes(subject: Subject): Promise<void> {
  await using at = await Room.open(subject);
  const { path, sha256, afterPromptSha256 } = at.payload(100 * MB);
  await using run = await at.runs(raw(`printf R; read go; cat ${path}`));
  await run.shows(/R/);
  const look = await at.operator.looksAt(at.worker);
  await run.possession.write(Buffer.from('go\n'));
  const end = await within('the look ends', 100_000, look.ended);
  expect(end).toMatchObject({ kind: 'closed', reason: 'ENDED', exit: { kind: 'code', code: 0 } });
  expect(look.received.sha256).toBe(sha256);
  expect((await run.ended).kind).toBe('closed');
  expect(run.received.sha256).toBe(afterPromptSha256);
}

async function fastExits(subject: Subject, rounds: number): Promise<void> {
  await using at = await Room.open(subject);
  const { path, sha256, afterPromptSha256 } = at.payload(100_000);
  for (let round = 0; round < rounds; round += 1) {
    await using run = await at.runs(raw(`printf R; read go; cat ${path}`));
    await run.shows(/R/);
    const look = await at.operator.looksAt(at.worker);
    await run.possession.write(Buffer.from('go\n'));
    const end = await within('the look ends', 20_000, look.ended);
    expect(end).toMatchObject({ kind: 'closed', reason: 'ENDED', producedSeq: 100_001n });
    expect(look.received.sha256).toBe(sha256);
    await run.ended;
    expect(run.received.sha256).toBe(afterPromptSha256);
  }
}

/** A program that ends while most of its output is still the kernel's, because nobody has taken it. */
async function exitBehindStalled(subject: Subject): Promise<void> {
  await using at = await Room.open(subject, { data: { WHEELHOUSE_RING_BYTES: '4096' } });
  const { path, sha256 } = at.payload(12_000);
  const gone = join(at.stack.workspace, 'gone');
  const { argv, tell } = at.whenTold(`cat ${path}; touch ${gone}`);
  await using _run = await at.runs(argv, { isHeadless: true });
  const look = await at.operator.looksAt(at.worker, { windowBytes: 4096 });
  look.stalls();
  tell();
  await eventually('the program has ended', () => existsSync(gone));
  await delay(300);
  look.goesOn();
  const end = await within('the look ends', 20_000, look.ended);
  expect(end).toMatchObject({ kind: 'closed', reason: 'ENDED', exit: { kind: 'code', code: 0 } });
  expect(look.received.sha256).toBe(sha256);
}

async function stalledReader(subject: Subject): Promise<void> {
  await using at = await Room.open(subject);
  const { path } = at.payload(8 * MB);
  const marker = join(at.stack.workspace, 'went-on');
  const { argv, tell } = at.whenTold(`cat ${path}; touch ${marker}; cat`);
  await using _run = await at.runs(argv, { isHeadless: true });
  const look = await at.operator.looksAt(at.worker, { windowBytes: MB, holdLimitMs: 1_000 });
  look.stalls();
  tell();
  await eventually('the agent went on', () => existsSync(marker), 20_000);
  look.goesOn();
  const end = await within('the look is closed', 20_000, look.ended);
  expect(end).toMatchObject({ kind: 'closed', reason: 'LAGGING' });
  const prefix = readFileSync(path).subarray(0, Number(look.received.bytes));
  expect(look.received.sha256).toBe(createHash('sha256').update(prefix).digest('hex'));
  if (end.kind === 'closed') {
    expect(end.ackedSeq).toBeLessThanOrEqual(end.sentSeq);
    expect(end.sentSeq).toBeLessThanOrEqual(end.producedSeq);
    expect(look.received.bytes).toBeLessThanOrEqual(end.sentSeq);
  }
}

/** A reader that reconnects over and over cannot hold the terminal for longer than it may be in all. */
async function reconnectingReader(subject: Subject): Promise<void> {
  await using at = await Room.open(subject, { data: { WHEELHOUSE_HELD_MAX_MS: '1500' } });
  const { path } = at.payload(64 * MB);
  const marker = join(at.stack.workspace, 'went-on');
  const { argv, tell } = at.whenTold(`cat ${path}; touch ${marker}; cat`);
  await using _run = await at.runs(argv, { isHeadless: true });
  const terms = { windowBytes: 65_536, holdLimitMs: 30_000, replace: true };
  tell();
  // Each look takes the place of the one before, so that nothing lets go of the terminal in between.
  const looks: Look[] = [];
  for (let round = 0; round < 20 && !existsSync(marker); round += 1) {
    const look = await at.operator.looksAt(at.worker, terms);
    look.stalls();
    looks.push(look);
    await delay(400);
  }
  // Twenty rounds are eight seconds; without a sum over all of them the agent would still be held.
  expect(existsSync(marker)).toBe(true);
  for (const look of looks) {
    look.goesOn();
  }
}

async function nobodyLooks(subject: Subject): Promise<void> {
  await using at = await Room.open(subject);
  const { path } = at.payload(5 * MB);
  const marker = join(at.stack.workspace, 'went-on');
  await using _run = await at.runs(raw(`cat ${path}; touch ${marker}; cat`), { isHeadless: true });
  await eventually('5 MB are drained', () => existsSync(marker), 20_000);
  const look = await at.operator.looksAt(at.worker);
  expect(look.presentation.opening.outSeq).toBe(BigInt(5 * MB));
  expect(look.received.bytes).toBe(0n);
}

async function everyByteBothWays(subject: Subject): Promise<void> {
  await using at = await Room.open(subject);
  await using run = await at.runs(raw('echo ready; exec cat'));
  await run.shows(/ready/);
  const look = await at.operator.looksAt(at.worker);
  const all = Buffer.from(Array.from({ length: 256 }, (_, value) => value));
  const split = Buffer.from('\u2500 half', 'utf8');
  await run.possession.write(all);
  await run.possession.write(split.subarray(0, 1));
  await run.possession.write(split.subarray(1));
  const expected = Buffer.concat([all, split]).toString('latin1');
  await eventually('all came back', () => look.received.text === expected);
  expect(run.received.text).toBe(`ready\n${expected}`);
}

/** Positions are the attachment's own: every reader sees the same number for the same byte. */
async function samePositions(subject: Subject): Promise<void> {
  await using at = await Room.open(subject);
  await using run = await at.runs(raw('echo one; read go; echo two; exec cat'));
  await run.shows(/one/);
  const first = await at.operator.looksAt(at.worker);
  expect(first.presentation.opening.outSeq).toBe(4n);
  await first.presentation.detach();
  await run.possession.write(Buffer.from('go\n'));
  await run.shows(/two/);
  const second = await at.operator.looksAt(at.worker);
  expect(second.presentation.opening.outSeq).toBe(run.received.bytes);
  await run.possession.write(Buffer.from('three'));
  await second.shows(/^three$/);
}

async function deafChild(subject: Subject): Promise<void> {
  await using at = await Room.open(subject);
  await using run = await at.runs(raw('echo ready; exec sleep 600'));
  await run.shows(/ready/);
  const look = await at.operator.looksAt(at.worker);
  const typing = run.possession.write(Buffer.alloc(256 * 1024, 0x61));
  // Until the terminal takes no more; it holds some twenty kilobytes.
  await delay(500);
  run.possession.resize({ rows: 40, cols: 100 });
  const closing = await within(
    'closing is not blocked',
    10_000,
    at.operator.workers.close(at.worker),
  );
  expect(closing.isFenced).toBe(true);
  expect(await look.ended).toMatchObject({ kind: 'closed', reason: 'WORKER_CLOSED' });
  await typing;
}

/** A program that does not read: what is acknowledged is what its terminal holds, and no more. */
async function ackMeansWritten(subject: Subject): Promise<void> {
  await using at = await Room.open(subject);
  await using run = await at.runs(raw('echo ready; exec sleep 600'));
  await run.shows(/ready/);
  const content = Buffer.alloc(128 * 1024, 0x62);
  let isTaken = false;
  const typing = run.possession.write(content).then(() => {
    isTaken = true;
  });
  await delay(1_500);
  expect(isTaken).toBe(false);
  await at.operator.workers.close(at.worker);
  await typing;
}

describe('bytes', () => {
  test('B2 100 MB from a raw program arrive as they were written', () => hundredMegabytes(product));
  test(
    'B7 fifty programs that print 100,000 bytes and exit at once lose none',
    { timeout: 300_000 },
    () => fastExits(product, 50),
  );
  test('B7 the end waits for what the kernel still holds', () => exitBehindStalled(product));
  falsifier(
    'B7 end after every byte',
    {
      file: 'services/data/adapters/reader-thread.ts',
      find: 'source.drainBytesLeft = this.#start.endDrainMax',
      replace: 'source.drainBytesLeft = 0',
    },
    exitBehindStalled,
  );
  test('B3 a reader that stalls is closed as lagging, with an exact prefix, and the agent goes on', () =>
    stalledReader(product));
  falsifier(
    'B3 hold limit',
    {
      file: 'services/data/rpc/presenter.ts',
      find: '() => this.#step(spent)',
      replace: '() => undefined',
    },
    stalledReader,
  );
  test('B3 a reader that reconnects cannot freeze the agent', () => reconnectingReader(product));
  falsifier(
    'B3 sum of holds',
    {
      file: 'services/data/carrier.ts',
      find: 'holdLeftMs(this.#ledger, clock.monotonic(), config.heldMaxMs)',
      replace: 'config.heldMaxMs',
    },
    reconnectingReader,
  );
  test('B4 with nobody looking the terminal is drained, and a look starts at the current position', () =>
    nobodyLooks(product));
  falsifier(
    'B4 drained when nobody looks',
    {
      file: 'services/data/carrier.ts',
      find: 'presenter?.neededSeq ?? this.terminal.producedSeq',
      replace: 'presenter?.neededSeq ?? 0n',
    },
    nobodyLooks,
  );
  test('B6 256 byte values and split characters are exact in both directions', () =>
    everyByteBothWays(product));
  falsifier(
    'B2 and B6 exact',
    {
      file: 'services/data/adapters/output-frame.ts',
      find: 'this.#isCopied = true;',
      replace: 'target[start] = (target[start] ?? 0) & 0x7f; this.#isCopied = true;',
    },
    everyByteBothWays,
  );
  test('B1 positions are the same number for every reader', () => samePositions(product));
  falsifier(
    'B1 positions of the attachment',
    {
      file: 'services/data/rpc/presenter.ts',
      find: 'atSeq: parts.holder.terminal.producedSeq',
      replace: 'atSeq: parts.holder.terminal.producedSeq - 1n',
    },
    samePositions,
  );
  test('B5 an input ack means that the terminal has the bytes', () => ackMeansWritten(product));
  falsifier(
    'B5 accepted is written',
    {
      file: 'services/data/rpc/possessor.ts',
      find: 'bytes: this.#owner.terminal.write(effect.payload)',
      replace: 'bytes: (this.#owner.terminal.write(effect.payload), effect.payload.length)',
    },
    ackMeansWritten,
  );
  test('B8 a child that never reads blocks neither resize nor close', () => deafChild(product));
  falsifier(
    'B8 a blocked write blocks nothing',
    {
      file: 'services/data/rpc/possessor.ts',
      find: 'bytes: this.#owner.terminal.write(effect.payload)',
      replace: `bytes: (() => { const until = Date.now() + 20_000; let n = 0;
        while (n < effect.payload.length && Date.now() < until) {
          n += this.#owner.terminal.write(effect.payload.subarray(n));
        } return n; })()`,
    },
    deafChild,
  );
});
