/** Which brokers the contracts are run against: the distribution's, and a current one where one is named. */
import { describe, test } from 'vitest';
import { locate, needs } from '../stack/machine.js';

/** Where a broker's program is; skips or fails the test that asks where there must be one and is none. */
export type ProgramFor = (test: Parameters<typeof needs>[0]) => string;

/**
 * Runs a suite once for each kind of broker.
 *
 * A current one is nobody's duty: without it there is one test, which passes and prints why it proves
 * nothing, so that the closing line stays plain and nobody takes the row for one that ran.
 */
export function onEachBroker(suite: (program: ProgramFor) => void): void {
  describe('the distribution’s nats-server', () => {
    suite((context) => {
      needs(context, 'nats-server');
      return locate('nats-server') ?? '';
    });
  });
  const current = process.env['NATS_SERVER'] ?? '';
  if (current !== '') {
    describe('the nats-server that NATS_SERVER names', () => suite(() => current));
    return;
  }
  test('a current nats-server is asked for by NATS_SERVER', () => {
    process.stdout.write('not run against a current nats-server: NATS_SERVER names none\n');
  });
}
