import { closeSync, mkdtempSync, rmSync, statSync, writeFileSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { openLog, trimLog } from './log-files.js';

test('a log that has outgrown its bound becomes the old one, under its writer’s hands', () => {
  const dir = mkdtempSync(join(tmpdir(), 'wheelhouse-log-'));
  try {
    const path = join(dir, 'data.log');
    const log = openLog(path);
    expect(statSync(path).mode & 0o777).toBe(0o600);
    writeSync(log, 'x'.repeat(9 * 1024 * 1024));
    trimLog(path);
    writeSync(log, 'next\n');
    closeSync(log);
    expect(statSync(path).size).toBe(5);
    expect(statSync(`${path}.1`).size).toBe(9 * 1024 * 1024);
    writeFileSync(path, 'small');
    trimLog(path);
    expect(statSync(path).size).toBe(5);
  } finally {
    rmSync(dir, { recursive: true });
  }
});
