/** What authority's journal promises of the disk, held against SQLite itself. */
import { type ChildProcess, spawn } from 'node:child_process';
import { cpSync, existsSync, mkdtempSync, rmSync, statSync, truncateSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { Outcome } from '#kernel/outcome.js';
import { ref } from '#kernel/refs.js';
import {
  Journal,
  JournalBroken,
  type JournalOptions,
} from '../../services/authority/adapters/journal.js';
import type { WorldEvent } from '../../services/authority/domain/world.js';

let folder = '';

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'wh-journal-'));
});

afterEach(() => rmSync(folder, { recursive: true, force: true }));

let lastName = 0;
const names: JournalOptions['names'] = {
  fresh: (prefix) => {
    lastName += 1;
    return `${prefix}_${lastName}`;
  },
};

function path(): string {
  return join(folder, 'authority', 'journal.sqlite');
}

function open(given: Partial<JournalOptions> = {}): Journal {
  return mustBe(Journal.open({ path: path(), names, ...given }));
}

function mustBe<Value>(outcome: Outcome<Value>): Value {
  if (outcome.kind === 'refused') {
    throw new Error(outcome.refusal.reason);
  }
  return outcome.value;
}

function closed(name: string): WorldEvent {
  return { kind: 'worker-closed', workerRef: ref(name) };
}

function namesIn(journal: Journal): string[] {
  return [...journal.events()].map((event) => ('workerRef' in event ? event.workerRef : ''));
}

describe('the store', () => {
  test('is durable at every commit: WAL, synchronous=FULL, held exclusively, as read back', () => {
    const journal = open();
    expect(journal.settings()).toEqual({
      journalMode: 'wal',
      synchronous: 2,
      lockingMode: 'exclusive',
    });
    journal.close();
  });

  test('lies in a folder for its owner alone', () => {
    open().close();
    expect(statSync(join(folder, 'authority')).mode & 0o777).toBe(0o700);
  });

  test('brings back what was appended, in order, and goes on counting', () => {
    const first = open();
    first.append([closed('wk_1'), closed('wk_2')], 10);
    first.close();
    const second = open();
    second.append([closed('wk_3')], 20);
    expect(namesIn(second)).toEqual(['wk_1', 'wk_2', 'wk_3']);
    expect(second.rowsAfter(1n, 10)).toEqual([
      { index: 2n, atMs: 10, kind: 'worker-closed', body: '{"workerRef":"wk_2"}' },
      { index: 3n, atMs: 20, kind: 'worker-closed', body: '{"workerRef":"wk_3"}' },
    ]);
    expect(second.rowsAfter(0n, 2).map(({ index }) => index)).toEqual([1n, 2n]);
    second.close();
  });

  test('names the initiator of a control peer, which nothing that decides reads back', () => {
    const journal = open();
    journal.append([{ kind: 'control-bound', operator: 'ada', peerRef: ref('pr_1') }], 0);
    const [row] = journal.rowsAfter(0n, 1);
    expect(JSON.parse(row?.body ?? '')).toEqual({
      initiatorIncarnation: expect.stringMatching(/^in_/),
      operator: 'ada',
      peerRef: 'pr_1',
    });
    expect([...journal.events()]).toEqual([
      { kind: 'control-bound', operator: 'ada', peerRef: 'pr_1' },
    ]);
    journal.close();
  });
});

describe('E4: the store has one holder for life', () => {
  test('a second opener is refused by name, and the first goes on', () => {
    const first = open();
    expect(Journal.open({ path: path(), names })).toEqual({
      kind: 'refused',
      refusal: { reason: 'STORE_IN_USE', facts: { store: 'authority' } },
    });
    first.append([closed('wk_1')], 0);
    expect(namesIn(first)).toEqual(['wk_1']);
    first.close();
    open().close();
  });

  test('so is one in another process, until the holder dies, however it dies', async () => {
    open().close();
    const holder = await holdElsewhere(path());
    expect(Journal.open({ path: path(), names })).toMatchObject({
      refusal: { reason: 'STORE_IN_USE' },
    });
    holder.kill('SIGKILL');
    await new Promise((resolve) => holder.once('exit', resolve));
    const journal = open();
    expect(namesIn(journal)).toEqual([]);
    journal.close();
  });

  test('a file that is no journal is a fault, not a refusal', () => {
    open().close();
    truncateSync(path(), 10);
    expect(() => open()).toThrow('cannot be opened');
  });
});

/** Another process that holds the store as the service does. */
async function holdElsewhere(file: string): Promise<ChildProcess> {
  const script = `
    const Database = require('better-sqlite3');
    const database = new Database(${JSON.stringify(file)});
    database.pragma('locking_mode = EXCLUSIVE');
    database.pragma('journal_mode = WAL');
    database.exec('BEGIN EXCLUSIVE; COMMIT');
    process.stdout.write('held');
    setInterval(() => undefined, 1000);
  `;
  const child = spawn(process.execPath, ['-e', script], { stdio: ['ignore', 'pipe', 'inherit'] });
  await new Promise((resolve) => child.stdout.once('data', resolve));
  return child;
}

describe('a crash', () => {
  /** What a killed process leaves: the file and its write-ahead log as they are on disk. */
  function crashed(journal: Journal): string {
    const copy = join(folder, 'crashed');
    cpSync(join(folder, 'authority'), copy, { recursive: true });
    journal.close();
    return join(copy, 'journal.sqlite');
  }

  test('loses nothing that was acknowledged', () => {
    const journal = open();
    for (let index = 1; index <= 50; index += 1) {
      mustBe(journal.append([closed(`wk_${index}`)], index));
    }
    const file = crashed(journal);
    const after = open({ path: file });
    expect(namesIn(after)).toHaveLength(50);
    after.close();
  });

  test('in the middle of a commit leaves what was committed before it, and nothing of it', () => {
    const journal = open();
    for (let index = 1; index <= 20; index += 1) {
      mustBe(journal.append([closed(`wk_${index}`), closed(`wk_${index}_again`)], index));
    }
    const file = crashed(journal);
    const walBytes = statSync(`${file}-wal`).size;
    const lengths = new Set<number>();
    for (let cut = 0; cut < 60; cut += 1) {
      const torn = join(folder, 'torn');
      rmSync(torn, { recursive: true, force: true });
      cpSync(join(folder, 'crashed'), torn, { recursive: true });
      truncateSync(join(torn, 'journal.sqlite-wal'), Math.max(0, walBytes - cut * 611));
      const after = open({ path: join(torn, 'journal.sqlite') });
      const found = namesIn(after);
      expect(found).toEqual(
        Array.from({ length: found.length / 2 }, (_, each) => [
          `wk_${each + 1}`,
          `wk_${each + 1}_again`,
        ]).flat(),
      );
      lengths.add(found.length);
      mustBe(after.append([closed('wk_later')], 0));
      after.close();
    }
    expect(lengths.size).toBeGreaterThan(3);
  });
});

describe('a full disk', () => {
  const large = closed('x'.repeat(3_000));

  test('refuses by name, writes nothing of it, and takes what fits afterwards', () => {
    const journal = open({ pagesMax: 8 });
    const outcomes = Array.from({ length: 30 }, () => journal.append([large, large], 0).kind);
    const kept = outcomes.filter((kind) => kind === 'granted').length;
    expect(outcomes).toContain('refused');
    expect(journal.append([large, large], 0)).toMatchObject({
      refusal: { reason: 'JOURNAL_FULL', facts: { freeBytes: expect.any(String) } },
    });
    expect(namesIn(journal)).toHaveLength(kept * 2);
    expect(journal.isFull).toBe(true);
    mustBe(journal.append([closed('wk_1')], 0));
    expect(journal.isFull).toBe(false);
    expect(journal.rowsAfter(BigInt(kept * 2), 9).map(({ index }) => index)).toEqual([
      BigInt(kept * 2 + 1),
    ]);
    journal.close();
  });

  test('says how much is free', () => {
    const journal = open();
    expect(journal.freeBytes()).toBeGreaterThan(0);
    journal.close();
  });
});

test('any other failure of a commit ends the process: only a restart knows what the disk has', () => {
  const journal = open();
  journal.close();
  expect(() => journal.append([closed('wk_1')], 0)).toThrow(JournalBroken);
  expect(existsSync(path())).toBe(true);
});
