import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';

const here = import.meta.dirname;

test('the README says what every exported name is for', () => {
  const index = readFileSync(join(here, 'index.ts'), 'utf8');
  const readme = readFileSync(join(here, 'README.md'), 'utf8');
  const names = exportedNames(index);
  expect(names.length).toBeGreaterThan(30);
  expect(names.filter((name) => !readme.includes(`\`${name}\``))).toEqual([]);
});

test('a name that is not in the README would be found', () => {
  expect(
    exportedNames("export { type A, b } from './x.js';\nexport type { C } from './y.js';"),
  ).toEqual(['A', 'b', 'C']);
});

function exportedNames(text: string): readonly string[] {
  return [...text.matchAll(/export (?:type )?\{([^}]*)\}/g)].flatMap(([, list = '']) =>
    list
      .split(',')
      .map((name) => name.replace(/^\s*type /, '').trim())
      .filter((name) => name !== ''),
  );
}
