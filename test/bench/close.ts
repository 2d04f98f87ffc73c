/** CloseWorker while the terminal floods and a reader reads: how long it takes, and what comes after. */
import { setTimeout as delay } from 'node:timers/promises';
import { ReaderProcess } from './reader-process.js';
import { quantile, type Row, row, type Terms } from './row.js';
import { Scene } from './scene.js';

const FLOOD_MS = 150;

export async function close({ isSmoke, say }: Terms): Promise<readonly Row[]> {
  const roundCount = isSmoke ? 2 : 50;
  await using scene = await Scene.open();
  const took: number[] = [];
  let bytesAfter = 0;
  let unfencedCount = 0;
  let worker = await scene.open('flooding');
  for (let round = 0; round < roundCount; round += 1) {
    const possession = await scene.run(worker, 'stty raw -echo; exec yes');
    await using reader = await ReaderProcess.open(scene, worker);
    await delay(FLOOD_MS);
    const calledMs = monotonicMs();
    const { isFenced } = await scene.workers.close(worker);
    const returnedMs = monotonicMs();
    took.push(returnedMs - calledMs);
    unfencedCount += isFenced ? 0 : 1;
    const { last, end } = await reader.seen();
    const late = last.filter(([atMs]) => atMs > returnedMs);
    bytesAfter += late.reduce((sum, [, bytes]) => sum + bytes, 0);
    if (round === 0) {
      say(`close: the reader's end was ${end}`);
    }
    await possession.ended;
    const { workerRef, workerGeneration } = await scene.workers.reopen(worker);
    worker = { workerRef, generation: workerGeneration };
  }
  return [
    row('close under flood, p50', 'ms', quantile(took, 0.5)),
    row('close under flood, p99', 'ms', quantile(took, 0.99)),
    row('close under flood, taken by the reader after the return', 'bytes', bytesAfter),
    row('close under flood, not fenced', 'count', unfencedCount),
  ];
}

function monotonicMs(): number {
  return Number(process.hrtime.bigint()) / 1e6;
}
