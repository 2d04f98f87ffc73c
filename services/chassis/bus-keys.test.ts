/** Keys of the bus: made once, for their owner alone, and never in what the broker reads. */
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import {
  busSeedPath,
  busUsersPath,
  ensureBusSeed,
  readBusSeed,
  writeBusUsers,
} from './bus-keys.js';

let state = '';
beforeEach(() => {
  state = mkdtempSync(join(tmpdir(), 'wh-bus-keys-'));
});
afterEach(() => rmSync(state, { recursive: true }));

test('a seed is made once, for its owner alone', () => {
  const path = busSeedPath(state, 'authority');
  const first = ensureBusSeed(path);
  const seed = readFileSync(path, 'utf8');
  expect(first).toMatch(/^U[A-Z2-7]{55}$/);
  expect(ensureBusSeed(path)).toBe(first);
  expect(readFileSync(path, 'utf8')).toBe(seed);
  expect(statSync(path).mode & 0o777).toBe(0o600);
  expect(statSync(join(state, 'bus')).mode & 0o777).toBe(0o700);
});

test('two services have two keys', () => {
  const control = ensureBusSeed(busSeedPath(state, 'control'));
  expect(ensureBusSeed(busSeedPath(state, 'data'))).not.toBe(control);
});

test('the broker’s list holds every public key and no seed', () => {
  const publicKey = ensureBusSeed(busSeedPath(state, 'control'));
  writeBusUsers(busUsersPath(state), [{ service: 'control', publicKey }]);
  const text = readFileSync(busUsersPath(state), 'utf8');
  expect(text).toContain(publicKey);
  expect(text).not.toContain(Buffer.from(readBusSeed(busSeedPath(state, 'control'))).toString());
  expect(statSync(busUsersPath(state)).mode & 0o777).toBe(0o644);
});

test.each(['', 'no seed at all', `SU${'A'.repeat(56)}`])(
  'a file that holds no seed is named, and what it holds is not said: %j',
  (content) => {
    const path = busSeedPath(state, 'data');
    ensureBusSeed(path);
    writeFileSync(path, content);
    expect(() => readBusSeed(path)).toThrow(`${path} holds no seed of a bus user`);
    expect(() => ensureBusSeed(path)).toThrow(`${path} holds no seed of a bus user`);
  },
);
