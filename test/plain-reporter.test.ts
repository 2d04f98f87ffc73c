import { expect, test } from 'vitest';
import { closingLine } from './plain-reporter.js';

test('a run ends in one plain line', () => {
  expect(closingLine({ passed: 3, failed: 0, skipped: [] })).toBe('3 passed, 0 failed');
});

test('skips are counted only when there are some', () => {
  const skipped = [{ name: 'x', reason: 'no sshd' }];
  expect(closingLine({ passed: 3, failed: 1, skipped })).toBe('3 passed, 1 failed, 1 skipped');
});
