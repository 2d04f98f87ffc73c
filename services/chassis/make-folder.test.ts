import { mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { makeFolder } from './make-folder.js';

let base: string;

beforeEach(() => {
  base = mkdtempSync(join(tmpdir(), 'wh-folder-'));
});

afterEach(() => rmSync(base, { recursive: true }));

test('makes what is missing on the way, for its owner alone, and is content with what is there', () => {
  const path = join(base, 'a', 'b', 'c');
  makeFolder(path);
  makeFolder(path);
  expect(statSync(join(base, 'a')).mode & 0o777).toBe(0o700);
  expect(statSync(path).mode & 0o777).toBe(0o700);
});

test('a file in the way is said, not passed over', () => {
  writeFileSync(join(base, 'file'), '');
  expect(() => makeFolder(join(base, 'file', 'below'))).toThrow('ENOTDIR');
});

test.runIf(process.platform === 'linux')('below /proc it says so and returns', () => {
  expect(() => makeFolder('/proc/nobody/below')).toThrow('ENOENT');
});
