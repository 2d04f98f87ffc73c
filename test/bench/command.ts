/** Commands to authority that are durable when they return: opening workers. */
import { closeSync, fdatasyncSync, mkdtempSync, openSync, rmSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { median, type Row, row, type Terms } from './row.js';
import { Scene } from './scene.js';

const CALLERS = 8;

export async function command({ isSmoke }: Terms): Promise<readonly Row[]> {
  const count = isSmoke ? 16 : 200;
  await using scene = await Scene.open();
  await timed(scene, 'warm', isSmoke ? 2 : 50);
  const alone = await timed(scene, 'alone', count);
  const began = performance.now();
  await Promise.all(
    Array.from({ length: CALLERS }, (_, caller) =>
      timed(scene, `caller-${caller}`, Math.floor(count / 4)),
    ),
  );
  const seconds = (performance.now() - began) / 1000;
  const many = CALLERS * Math.floor(count / 4);
  const synced = syncTimes(scene.stack.stateDir, count);
  return [
    row('durable command alone, p50, beside fdatasync', 'ms', median(alone), median(synced)),
    row(`durable commands, ${CALLERS} callers`, '1/s', many / seconds),
  ];
}

/** One after the other. Returns how long each took, in ms. */
async function timed(scene: Scene, name: string, count: number): Promise<readonly number[]> {
  const took: number[] = [];
  for (let at = 0; at < count; at += 1) {
    const began = performance.now();
    await scene.open(`${name}-${at}`);
    took.push(performance.now() - began);
  }
  return took;
}

/** A write of a few hundred bytes and its fdatasync, where the journal lies. */
function syncTimes(folder: string, count: number): readonly number[] {
  const scratch = mkdtempSync(join(folder, 'sync-'));
  const file = openSync(join(scratch, 'file'), 'w');
  const bytes = Buffer.alloc(512, 'x');
  const took: number[] = [];
  for (let at = 0; at < count; at += 1) {
    const began = performance.now();
    writeSync(file, bytes);
    fdatasyncSync(file);
    took.push(performance.now() - began);
  }
  closeSync(file);
  rmSync(scratch, { recursive: true });
  return took;
}
