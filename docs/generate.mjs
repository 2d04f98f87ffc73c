/**
 * Writes the documents that are read off the code: docs/refusals.md and docs/limits.md.
 *
 * usage: node docs/generate.mjs [--check] [--in FOLDER]
 * Runs from compiled output; `npm run docs` compiles first. With --check nothing is written: a
 * document that would change is named, and the exit code is 1.
 */
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { catalogue } from '#kernel/refusal.js';
import { limitsDocument } from './limits.mjs';
import { refusalsDocument } from './refusals.mjs';

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const inFolder = process.argv.indexOf('--in');
const folder = inFolder === -1 ? join(root, 'docs') : process.argv[inFolder + 1];

const proto = readFileSync(join(root, 'proto/wheelhouse/refusal/v1/refusal.proto'), 'utf8');
const documents = {
  'refusals.md': refusalsDocument(proto, catalogue),
  'limits.md': await limitsDocument(root),
};

for (const [name, text] of Object.entries(documents)) {
  const path = join(folder, name);
  if (!process.argv.includes('--check')) {
    writeFileSync(path, text);
  } else if (!existsSync(path) || readFileSync(path, 'utf8') !== text) {
    process.stderr.write(`docs/${name} is not what the code says; run npm run docs\n`);
    process.exitCode = 1;
  }
}
