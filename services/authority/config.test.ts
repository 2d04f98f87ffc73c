import { describe, expect, test } from 'vitest';
import { loadSettings, settings } from './config.js';

describe('settings', () => {
  test('have the defaults that the design names', () => {
    expect(loadSettings({})).toMatchObject({
      listen: '127.0.0.1:0',
      defaultNode: 'local',
      rebindGraceMs: 30_000,
      fenceAckMs: 2_000,
      workersMax: 1_000,
      batchQuestionsMax: 4_096,
      callersPerNodeMax: 4_096,
      runCertificateLifeMs: 3_600_000,
      actorIdentityLifeMs: 30 * 86_400_000,
      journalLowWaterBytes: 64 * 1024 * 1024,
      drainDeadlineMs: 5_000,
    });
  });

  test('are read from the environment', () => {
    expect(loadSettings({ WHEELHOUSE_REBIND_GRACE_MS: '0' }).rebindGraceMs).toBe(0);
  });

  test.each([
    ['WHEELHOUSE_WORKERS_MAX', '0'],
    ['WHEELHOUSE_FENCE_ACK_MS', '1.5'],
    ['WHEELHOUSE_TAIL_PAGE_ROWS', 'many'],
  ])('%s=%s stops the service from starting, naming it', (variable, value) => {
    expect(() => loadSettings({ [variable]: value })).toThrow(variable);
  });

  test.each([
    ['WHEELHOUSE_DRAIN_DEADLINE_MS', '1000'],
    ['WHEELHOUSE_NODE_BACKLOG_MAX', '4095'],
  ])('%s=%s does not agree with another, which stops it too', (variable, value) => {
    expect(() => loadSettings({ [variable]: value })).toThrow(variable);
  });

  test('each say why', () => {
    for (const { reason, unit } of Object.values(settings)) {
      expect(reason).toMatch(/\.$/);
      expect(unit).not.toBe('');
    }
  });
});
