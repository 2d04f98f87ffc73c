/**
 * The durable journal: one SQLite file, held by one process for life, every commit on disk.
 *
 * WAL quietly means synchronous=NORMAL in this build of SQLite, so FULL is set after it and read back
 * (docs/architecture.md, traps). A commit that failed in any way but a full disk ends the process: after a failed fsync
 * the page cache may lie, and only a restart reads what the disk has.
 */
import { statfsSync } from 'node:fs';
import { dirname } from 'node:path';
import Database from 'better-sqlite3';
import { Fault } from '#chassis/fault.js';
import { makeFolder } from '#chassis/make-folder.js';
import type { FreshNames } from '#kernel/fresh-names.js';
import { granted, type Outcome, refused } from '#kernel/outcome.js';
import type { StoredFact } from '../domain/deciding.js';
import type { WorldEvent } from '../domain/world.js';
import { Ballast } from './ballast.js';
import { decodeEvent, encodeEvent } from './event-rows.js';
import { mintInitiator } from './initiator.js';

/** The store can no longer be trusted by this process. Ends it. */
export class JournalBroken extends Error {
  override readonly name = 'JournalBroken';
}

export interface JournalOptions {
  /** The file; its folder is made, readable to its owner alone. */
  readonly path: string;
  readonly names: FreshNames;
  /** Kept free for endings on a disk that others fill, bytes; 0 for none. */
  readonly ballastBytes?: number;
  /** Test hook: the largest the file may grow, in pages; 0 for the disk's own limit. */
  readonly pagesMax?: number;
}

interface StoredRow {
  readonly idx: bigint;
  readonly at_ms: bigint;
  readonly kind: string;
  readonly body: string;
}

export class Journal {
  readonly #database: Database.Database;
  readonly #folder: string;
  readonly #names: FreshNames;
  readonly #insert: Database.Statement<[bigint, number, string, string]>;
  readonly #after: Database.Statement<[bigint, number], StoredRow>;
  readonly #ballast: Ballast;
  #lastIndex: bigint;
  #isFull = false;

  private constructor(database: Database.Database, options: JournalOptions) {
    this.#database = database;
    this.#folder = dirname(options.path);
    this.#names = options.names;
    this.#insert = database.prepare(
      'INSERT INTO event (idx, at_ms, kind, body) VALUES (?, ?, ?, ?)',
    );
    this.#after = database
      .prepare<[bigint, number], StoredRow>(
        'SELECT idx, at_ms, kind, body FROM event WHERE idx > ? ORDER BY idx LIMIT ?',
      )
      .safeIntegers();
    this.#lastIndex = lastIndexOf(database);
    this.#ballast = new Ballast(options.path, options.ballastBytes ?? 0);
    this.#ballast.take(() => this.freeBytes());
  }

  /** Takes the store for life, before anything in it is read. Refuses STORE_IN_USE. Throws a `Fault`. */
  static open(options: JournalOptions): Outcome<Journal> {
    makeFolder(dirname(options.path));
    const database = new Database(options.path, { timeout: 0 });
    try {
      lockForLife(database);
    } catch (error) {
      database.close();
      if (isCode(error, 'SQLITE_BUSY')) {
        return refused('STORE_IN_USE', { store: 'authority' });
      }
      throw new Fault('the journal cannot be opened', { cause: error });
    }
    prepare(database, options.pagesMax ?? 0);
    return granted(new Journal(database, options));
  }

  /** Index of the newest fact; 0 when there is none. */
  get lastIndex(): bigint {
    return this.#lastIndex;
  }

  /** Whether the last append found the disk full; until one succeeds. */
  get isFull(): boolean {
    return this.#isFull;
  }

  /** Every stored event, in order. Throws a `Fault` for one that cannot be read. */
  *events(): Generator<WorldEvent> {
    const all = this.#database.prepare<[], StoredRow>(
      'SELECT idx, at_ms, kind, body FROM event ORDER BY idx',
    );
    for (const { kind, body } of all.iterate()) {
      yield decodeEvent(kind, body);
    }
  }

  /** Rows after an index, at most so many, in order. */
  rowsAfter(index: bigint, rowsMax: number): readonly StoredFact[] {
    return this.#after.all(index, rowsMax).map((row) => ({
      index: row.idx,
      atMs: Number(row.at_ms),
      kind: row.kind,
      body: row.body,
    }));
  }

  /**
   * Makes events durable, all or none: on disk when it returns.
   *
   * A full disk costs the ballast first: what begins is refused long before, so
   * what is asked for here is to end. Refuses JOURNAL_FULL, having written nothing. Throws
   * `JournalBroken` for anything else.
   */
  append(events: readonly WorldEvent[], atMs: number): Outcome<undefined> {
    const isDurable =
      this.#commit(events, atMs) || (this.#ballast.give() && this.#commit(events, atMs));
    this.#isFull = !isDurable;
    if (!isDurable) {
      return refused('JOURNAL_FULL', { freeBytes: String(this.freeBytes()) });
    }
    this.#ballast.take(() => this.freeBytes());
    return granted(undefined);
  }

  /** False when the disk is full: then nothing was written. */
  #commit(events: readonly WorldEvent[], atMs: number): boolean {
    let index = this.#lastIndex;
    try {
      this.#database.exec('BEGIN IMMEDIATE');
      for (const event of events) {
        index += 1n;
        this.#insert.run(index, atMs, event.kind, encodeEvent(event, this.#addedTo(event)));
      }
      this.#database.exec('COMMIT');
    } catch (error) {
      this.#rollBack(error);
      return false;
    }
    this.#lastIndex = index;
    return true;
  }

  /** Free space on the journal's disk, bytes. */
  freeBytes(): number {
    const { bavail, bsize } = statfsSync(this.#folder);
    return bavail * bsize;
  }

  /** What SQLite says the settings are that a promise rests on. */
  settings(): Readonly<Record<'journalMode' | 'synchronous' | 'lockingMode', unknown>> {
    return settingsOf(this.#database);
  }

  /** Gives the store back. */
  close(): void {
    this.#database.close();
  }

  #addedTo(event: WorldEvent): Readonly<Record<string, string>> {
    return event.kind === 'control-bound'
      ? { initiatorIncarnation: mintInitiator(this.#names) }
      : {};
  }

  #rollBack(error: unknown): void {
    if (!isCode(error, 'SQLITE_FULL')) {
      throw new JournalBroken('a commit did not reach the disk', { cause: error });
    }
    if (this.#database.inTransaction) {
      this.#database.exec('ROLLBACK');
    }
  }
}

/** Exclusive locking keeps what the first transaction takes until the process ends, however it ends. */
function lockForLife(database: Database.Database): void {
  database.pragma('locking_mode = EXCLUSIVE');
  database.pragma('journal_mode = WAL');
  database.exec('BEGIN EXCLUSIVE');
  database.exec('COMMIT');
}

function prepare(database: Database.Database, pagesMax: number): void {
  database.pragma('synchronous = FULL');
  const { journalMode, synchronous, lockingMode } = settingsOf(database);
  if (journalMode !== 'wal' || synchronous !== 2 || lockingMode !== 'exclusive') {
    throw new Fault(
      `the journal is not durable: ${journalMode}, synchronous=${synchronous}, ${lockingMode}`,
    );
  }
  database.exec(
    'CREATE TABLE IF NOT EXISTS event (idx INTEGER PRIMARY KEY, at_ms INTEGER NOT NULL, kind TEXT NOT NULL, body TEXT NOT NULL) STRICT',
  );
  if (pagesMax > 0) {
    database.pragma(`max_page_count = ${pagesMax}`);
  }
}

function settingsOf(database: Database.Database): ReturnType<Journal['settings']> {
  return {
    journalMode: database.pragma('journal_mode', { simple: true }),
    synchronous: database.pragma('synchronous', { simple: true }),
    lockingMode: database.pragma('locking_mode', { simple: true }),
  };
}

function lastIndexOf(database: Database.Database): bigint {
  const row = database
    .prepare<[], { readonly last: bigint }>('SELECT coalesce(max(idx), 0) AS last FROM event')
    .safeIntegers()
    .get();
  return row?.last ?? 0n;
}

function isCode(error: unknown, code: string): boolean {
  return (
    error instanceof Database.SqliteError &&
    (error.code === code || error.code.startsWith(`${code}_`))
  );
}
