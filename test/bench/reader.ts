/**
 * An operator's reader in a process of its own, as `watch` is one.
 *
 * usage: reader STATE AUTHORITY DATA OPERATOR WORKER_REF GENERATION [--hash] [--stall]
 * Prints `open` when the look has begun, then one line of JSON when it has ended. With --stall it
 * acknowledges nothing: what it is given it never takes.
 */
import { createHash } from 'node:crypto';
import { readIdentity } from '#chassis/identity-files.js';
import { connect } from '#client/connect.js';
import { ControlBind } from '#client/control-bind.js';
import { Presentation } from '#client/presentation.js';

/** What the reader saw. Times are the machine's monotonic clock in ms, the same in every process. */
export interface Sighting {
  readonly bytes: number;
  readonly ms: number;
  readonly end: string;
  readonly sha256: string | undefined;
  /** The last frames: when each was taken, and its length. */
  readonly last: readonly (readonly [atMs: number, bytes: number])[];
}

const LAST_FRAMES = 512;
const HOLD_LIMIT_MS = 30_000;

const [stateDir = '', authority = '', data = '', operator = '', workerRef = '', generation = '0'] =
  process.argv.slice(2);
const isStalled = process.argv.includes('--stall');
const hash = process.argv.includes('--hash') ? createHash('sha256') : undefined;

let bytes = 0;
let firstMs = 0;
let lastMs = 0;
const last: [number, number][] = [];

const identity = readIdentity(stateDir, 'human-control', operator);
const control = await ControlBind.open(authority, identity);
const connection = connect(data, 'data', identity);
const look = await Presentation.open(
  connection,
  { worker: { workerRef, generation: BigInt(generation) }, holdLimitMs: HOLD_LIMIT_MS },
  { take },
);
process.stdout.write('open\n');
const end = await look.ended;
const sighting: Sighting = {
  bytes,
  ms: lastMs - firstMs,
  end: end.kind === 'closed' ? end.reason : end.kind,
  sha256: hash?.digest('hex'),
  last,
};
process.stdout.write(`${JSON.stringify(sighting)}\n`);
control.close();
connection[Symbol.dispose]();

function take(frame: Buffer): void | Promise<void> {
  lastMs = monotonicMs();
  firstMs ||= lastMs;
  bytes += frame.length;
  hash?.update(frame);
  last.push([lastMs, frame.length]);
  if (last.length > LAST_FRAMES) {
    last.shift();
  }
  return isStalled ? new Promise(() => undefined) : undefined;
}

function monotonicMs(): number {
  return Number(process.hrtime.bigint()) / 1e6;
}
