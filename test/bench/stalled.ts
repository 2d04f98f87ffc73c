/** A reader that takes nothing while its terminal floods: what it costs the data node. */
import { setTimeout as delay } from 'node:timers/promises';
import { residentBytes } from '../stack/census.js';
import { ReaderProcess } from './reader-process.js';
import { type Row, row, type Terms } from './row.js';
import { Scene } from './scene.js';

const MIB = 1024 * 1024;
const FLOOD = 'stty raw -echo; exec yes';

/** The first stall, in a look that has ended since, pays for what every later one finds there. */
export async function stalled({ isSmoke }: Terms): Promise<readonly Row[]> {
  const stallMs = isSmoke ? 1_000 : 5_000;
  await using scene = await Scene.open();
  const pid = scene.stack.pid('data');
  const worker = await scene.open('stalled');
  const possession = await scene.run(worker, FLOOD);
  {
    await using _reading = await ReaderProcess.open(scene, worker);
    await delay(1_000);
  }
  await delay(1_000);
  const before = residentBytes(pid);
  await using _stalled = await ReaderProcess.open(scene, worker, '--stall');
  let most = 0;
  const until = performance.now() + stallMs;
  while (performance.now() < until) {
    most = Math.max(most, residentBytes(pid));
    await delay(50);
  }
  possession.abort();
  return [row('reader that takes nothing: memory grown at most', 'MiB', (most - before) / MIB)];
}
