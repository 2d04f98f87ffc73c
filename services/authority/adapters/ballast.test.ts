import { existsSync, mkdtempSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { Ballast } from './ballast.js';

const BYTES = 3_000_000;
let folder = '';
const journal = (): string => join(folder, 'journal.sqlite');
const ballast = (): string => join(folder, 'ballast');
const plenty = (): number => 10 * BYTES;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'wh-ballast-'));
});
afterEach(() => rmSync(folder, { recursive: true }));

test('takes real space, gives it back once, and takes it again when there is plenty', () => {
  const held = new Ballast(journal(), BYTES);
  expect(held.give()).toBe(false);
  held.take(plenty);
  expect(statSync(ballast()).size).toBe(BYTES);
  expect(statSync(ballast()).blocks * 512).toBeGreaterThanOrEqual(BYTES);
  expect(held.give()).toBe(true);
  expect(existsSync(ballast())).toBe(false);
  expect(held.give()).toBe(false);
  held.take(() => 2 * BYTES - 1);
  expect(existsSync(ballast())).toBe(false);
  held.take(() => 2 * BYTES);
  expect(existsSync(ballast())).toBe(true);
});

test('what an earlier life kept is there to be given', () => {
  new Ballast(journal(), BYTES).take(plenty);
  expect(new Ballast(journal(), BYTES).give()).toBe(true);
});

test('none is kept where none is wanted', () => {
  new Ballast(journal(), 0).take(plenty);
  expect(existsSync(ballast())).toBe(false);
});
