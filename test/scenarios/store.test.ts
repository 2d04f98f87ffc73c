/** Law E4 on real processes: one authority holds its store, for life. */
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { runCli } from '../stack/cli-process.js';
import { falsifier, type Subject } from '../stack/falsifier.js';
import { startStack } from '../stack/start-stack.js';
import { Operator } from './actors.js';
import { product } from './room.js';

/** A second authority on the same folder, which ends by itself if it is turned away. */
async function oneHolder({ distDir }: Subject): Promise<void> {
  await using stack = await startStack({ distDir });
  await using operator = await Operator.at(stack);
  await operator.opens('demo');
  const authority = {
    args: [join(distDir, 'services', 'authority', 'main.js')],
    cwd: stack.workspace,
    env: {
      WHEELHOUSE_STATE: stack.stateDir,
      WHEELHOUSE_LISTEN: '127.0.0.1:0',
      PATH: process.env['PATH'] ?? '',
    },
  };
  const second = await runCli(authority, { deadlineMs: 10_000 }).catch(() => undefined);
  expect(second?.stdout.toString() ?? 'it goes on beside the first').toMatch(
    /^\{"failed":"STORE_IN_USE/,
  );
  expect(await operator.workers.list()).toHaveLength(1);
}

describe('the store', () => {
  test('E4 a second authority is refused store-in-use before it reads anything', () =>
    oneHolder(product));
  falsifier(
    'E4 one holder',
    [
      {
        file: 'services/authority/adapters/journal.ts',
        find: "database.pragma('locking_mode = EXCLUSIVE');",
        replace: '',
      },
      {
        file: 'services/authority/adapters/journal.ts',
        find: "|| lockingMode !== 'exclusive'",
        replace: '',
      },
    ],
    oneHolder,
  );
});
