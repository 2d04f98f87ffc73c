/** Set-up says plainly what a machine lacks, and runs once at a time. */
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { root } from './tidy/project.js';

interface Tools {
  nodeProblem(version: string): string | undefined;
  missingTools(path?: string, platform?: string): readonly string[];
}

interface Lock {
  holdLock(path: string, say: (line: string) => void): { release(): void };
}

const { nodeProblem, missingTools } = (await import(join(root, 'deploy/setup-tools.mjs'))) as Tools;
const { holdLock } = (await import(join(root, 'deploy/setup-lock.mjs'))) as Lock;

test.each([
  { version: '18.20.0', isEnough: false },
  { version: '20.18.3', isEnough: false },
  { version: '20.19.0', isEnough: true },
  { version: '20.20.2', isEnough: true },
  { version: '24.0.0', isEnough: true },
])('Node $version is enough: $isEnough', ({ version, isEnough }) => {
  expect(nodeProblem(version) === undefined).toBe(isEnough);
});

test('each missing tool is named, and how to get them', () => {
  expect(missingTools('/nowhere', 'linux')).toEqual([
    expect.stringContaining('python3 is missing'),
    expect.stringContaining('make is missing'),
    expect.stringContaining('C++ compiler is missing'),
    expect.stringContaining('apt-get install python3 make g++'),
  ]);
  expect(missingTools('/nowhere', 'darwin').at(-1)).toContain('xcode-select');
});

test('a set-up that died holding the lock does not hold up the next', () => {
  const folder = mkdtempSync(join(tmpdir(), 'wheelhouse-lock-'));
  const path = join(folder, 'lock');
  // Larger than any process id there can be: nobody has it.
  writeFileSync(path, String(2 ** 22 + 1));
  const said: string[] = [];
  const lock = holdLock(path, (line) => said.push(line));
  expect(existsSync(path)).toBe(true);
  lock.release();
  expect({ isThere: existsSync(path), said }).toEqual({ isThere: false, said: [] });
  rmSync(folder, { recursive: true });
});
