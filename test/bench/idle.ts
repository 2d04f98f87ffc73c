/** Terminals in which nothing happens: what each costs its data node. */
import { setTimeout as delay } from 'node:timers/promises';
import { cpuSeconds, residentBytes } from '../stack/census.js';
import { type Row, row, type Terms } from './row.js';
import { Scene } from './scene.js';

const MIB = 1024 * 1024;
/** More than a ring holds: a terminal that was used keeps its ring resident. */
const USED = 'head -c 600000 /dev/zero | tr "\\0" x; exec sleep 1000';

export async function idle({ isSmoke }: Terms): Promise<readonly Row[]> {
  const count = isSmoke ? 5 : 100;
  const watchMs = isSmoke ? 500 : 5_000;
  await using scene = await Scene.open();
  const pid = scene.stack.pid('data');
  const possessions = [await scene.run(await scene.open('warm'), USED)];
  await delay(1_000);
  const before = residentBytes(pid);
  for (let at = 0; at < count; at += 1) {
    possessions.push(await scene.run(await scene.open(`idle-${at}`), USED));
  }
  await delay(3_000);
  const after = residentBytes(pid);
  const cpuBefore = cpuSeconds(pid);
  await delay(watchMs);
  const cpu = cpuSeconds(pid) - cpuBefore;
  for (const possession of possessions) {
    possession.abort();
  }
  return [
    row('idle terminal, used before: memory', 'MiB', (after - before) / count / MIB),
    row(`${count} idle terminals: processor`, '% of a core', (cpu / watchMs) * 100_000),
  ];
}
