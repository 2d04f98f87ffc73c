import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { mintInitiator } from './initiator.js';

const plane = join(import.meta.dirname, '..');

/** The files of a folder of sources whose text has a word in it. */
function naming(word: RegExp, folder: string): string[] {
  return readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((path) => path.endsWith('.ts') && !path.endsWith('.test.ts'))
    .filter((path) => word.test(readFileSync(join(folder, path), 'utf8')))
    .sort();
}

test('only the journal’s writer knows of the initiator’s incarnation', () => {
  const known = /[iI]nitiatorIncarnation|mintInitiator|initiator\.js/;
  expect(naming(known, plane)).toEqual(['adapters/initiator.ts', 'adapters/journal.ts']);
});

test('a new one is minted for each life at the controls', () => {
  let last = 0;
  const fresh = (prefix: string): string => {
    last += 1;
    return `${prefix}_${last}`;
  };
  expect([mintInitiator({ fresh }), mintInitiator({ fresh })]).toEqual(['in_1', 'in_2']);
});
