/** Runs the generator of the documents as `npm run docs:check` does. */
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { root } from './project.js';

/** Names the documents of a folder that are not what the code says; empty when all are. */
export function staleDocuments(folder: string): readonly string[] {
  const generator = join(root, 'docs', 'generate.mjs');
  const done = spawnSync(process.execPath, [generator, '--check', '--in', folder], {
    encoding: 'utf8',
  });
  const stale = [...done.stderr.matchAll(/^(\S+) is not what the code says/gm)];
  if (done.status !== 0 && stale.length === 0) {
    throw new Error(`the generator failed: ${done.stderr}`);
  }
  return stale.map(([, name]) => name ?? '');
}
