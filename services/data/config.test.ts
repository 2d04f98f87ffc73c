import { describe, expect, test } from 'vitest';
import { loadConfig } from './config.js';

const given = { WHEELHOUSE_STATE: '/state' };

describe('where clients reach a node', () => {
  test.each(['0.0.0.0:7412', '[::]:7412', '[0:0:0:0:0:0:0:0]:7412', '0:7412', ':::7412'])(
    'must be said when it listens on %s, or it would tell them to dial that',
    (listen) => {
      expect(() => loadConfig({ ...given, WHEELHOUSE_LISTEN: listen })).toThrow(
        'WHEELHOUSE_ADVERTISE',
      );
      const advertised = { WHEELHOUSE_LISTEN: listen, WHEELHOUSE_ADVERTISE: 'node2.example:7412' };
      expect(loadConfig({ ...given, ...advertised }).advertise).toBe('node2.example:7412');
    },
  );

  test.each(['127.0.0.1:0', '[::1]:7412', '10.0.0.1:7412', 'node2:7412', '[fd00::]:7412'])(
    'is where it listens when that is %s',
    (listen) => {
      expect(loadConfig({ ...given, WHEELHOUSE_LISTEN: listen }).listen).toBe(listen);
    },
  );
});

test('limits that contradict one another stop the service from starting', () => {
  expect(() => loadConfig({})).toThrow('WHEELHOUSE_STATE');
  expect(() => loadConfig({ ...given, WHEELHOUSE_RING_BYTES: '5000' })).toThrow('power of two');
  expect(() => loadConfig({ ...given, WHEELHOUSE_TERMINAL_UID: '10001' })).toThrow(
    'WHEELHOUSE_TERMINAL_GID',
  );
});
