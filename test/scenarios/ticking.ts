/**
 * A program that prints the machine's monotonic clock, line by line: what a reader was shown can be
 * compared with the instant at which something was known to be in force.
 */
import type { AgentRun, Look } from './actors.js';
import type { Room } from './room.js';

/** CLOCK_MONOTONIC in nanoseconds, two hundred lines a second, whatever signal comes. */
const clock = [
  'python3',
  '-c',
  `import os, signal, time, tty
signal.signal(signal.SIGHUP, signal.SIG_IGN)
tty.setraw(0)
while True:
    try:
        os.write(1, b"%d\\n" % time.monotonic_ns())
    except OSError:
        break
    time.sleep(0.005)
`,
];

/** The newest instant a reader was shown; 0 before the first. */
export function newest(look: Look): bigint {
  const lines = look.received.text.split('\n').slice(0, -1);
  return BigInt(lines.at(-1) ?? 0);
}

/** The program runs, and is looked at. */
export async function ticking(
  room: Room,
  holdLimitMs?: number,
): Promise<{ run: AgentRun; look: Look }> {
  const run = await room.runs(clock, { isHeadless: true });
  const look = await room.operator.looksAt(room.worker, { holdLimitMs });
  await look.shows(/\d+\n\d+\n/);
  return { run, look };
}
