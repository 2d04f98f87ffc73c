/** What must be true after every crash, whatever crashed: what was shown is exact, nobody broke, nothing is left. */
import { createHash } from 'node:crypto';
import { copyFileSync, existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { expect } from 'vitest';
import type { StreamEnd } from '#client/stream-end.js';
import { type Census, processesOf } from '../stack/census.js';
import type { CliExit } from '../stack/cli-process.js';
import { eventually, within } from '../stack/eventually.js';
import { planes, type Stack } from '../stack/stack.js';
import type { AgentRun, Look, Received } from './actors.js';
import { countedSha256, positionOf } from './counting.js';

/** As long as anything started may take to be gone, whoever was killed. */
const LEFT_MS = 10_000;

/** Waits for the end of somebody's reading of `counting` and compares every byte of it. */
export async function exactToItsEnd(
  reader: Look | AgentRun,
  deadlineMs = 20_000,
): Promise<StreamEnd> {
  const stream = 'presentation' in reader ? reader.presentation : reader.possession;
  const end = await within('the reader hears of the end', deadlineMs, stream.ended);
  expectCounted(reader.received, stream.opening.outSeq);
  const takenSeq = stream.opening.outSeq + reader.received.bytes;
  if (end.kind === 'closed') {
    expect(end.ackedSeq).toBeLessThanOrEqual(end.sentSeq);
    expect(end.sentSeq).toBeLessThanOrEqual(end.producedSeq);
    expect(takenSeq).toBe(end.sentSeq);
  } else {
    expect(takenSeq).toBe(end.takenSeq);
  }
  return end;
}

/** That output is a gapless piece of `counting` from a position on. */
export function expectCounted(received: Received, fromSeq: bigint): void {
  expect(received.sha256).toBe(countedSha256(fromSeq, received.bytes));
}

/**
 * Compares what `wheelhouse watch` wrote of `counting` with where it says that it stood.
 *
 * Returns why it says that it is over.
 */
export function watchedExactly({ stdout, stderr }: CliExit): string {
  const [, reason = stderr] = /^closed: ([a-z-]+)/m.exec(stderr) ?? [];
  // Its own position where no other is known, else the sender's: all that was sent has come.
  const isOwn = reason === 'transport-lost' || reason === 'detached';
  const [, at = '-1'] = (isOwn ? /acked=(\d+)/ : /sent=(\d+)/).exec(stderr) ?? [];
  const fromSeq = positionOf(stdout);
  const sha256 = createHash('sha256').update(stdout).digest('hex');
  expect(sha256).toBe(countedSha256(fromSeq, BigInt(stdout.length)));
  expect(fromSeq + BigInt(stdout.length)).toBe(BigInt(at));
  return reason;
}

/** Why a stream closed, or how it was over without a reason. */
export function reasonOf(end: StreamEnd): string {
  return end.kind === 'closed' ? end.reason : end.kind;
}

export function expectNoBugs(stack: Stack): void {
  for (const plane of planes) {
    expect(stack.log(plane)).not.toContain('"level":60');
  }
}

/** Waits until no program of any terminal is left. What is left all the same is ended, once it was told. */
export async function nothingLeft(stack: Stack, deadlineMs = LEFT_MS): Promise<void> {
  const left = (): readonly Census[] => processesOf(stack.workspace);
  await eventually('no program is left', () => left().length === 0, deadlineMs).catch(() => {
    const all = left();
    for (const { pid } of all) {
      process.kill(pid, 'SIGKILL');
    }
    expect(all).toEqual([]);
  });
}

/** One durable fact. */
export interface Fact {
  readonly index: number;
  readonly atMs: number;
  readonly kind: string;
  readonly body: Readonly<Record<string, string>>;
}

/** Every fact in the journal of an authority that has ended; a living one's is locked. */
export function journalOf(stack: Stack): readonly Fact[] {
  const folder = mkdtempSync(join(tmpdir(), 'wh-journal-'));
  const copy = join(folder, 'journal.sqlite');
  try {
    const journal = join(stack.stateDir, 'authority', 'journal.sqlite');
    for (const suffix of ['', '-wal'].filter((each) => existsSync(`${journal}${each}`))) {
      copyFileSync(`${journal}${suffix}`, `${copy}${suffix}`);
    }
    return factsIn(copy);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

function factsIn(path: string): readonly Fact[] {
  const database = new Database(path);
  try {
    expect(database.pragma('integrity_check', { simple: true })).toBe('ok');
    const rows = database.prepare('SELECT idx, at_ms, kind, body FROM event ORDER BY idx').all();
    return (rows as { idx: number; at_ms: number; kind: string; body: string }[]).map((row) => ({
      index: row.idx,
      atMs: row.at_ms,
      kind: row.kind,
      body: JSON.parse(row.body),
    }));
  } finally {
    database.close();
  }
}
