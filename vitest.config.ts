/** Which tests there are, by what they need and how long they may take. */
import { defineConfig } from 'vitest/config';

/** Our own `#…` imports lead to the sources; without it they lead to dist. */
const conditions = ['source', 'module', 'node', 'development|production'];
const resolve = { conditions };
const ssr = { resolve: { conditions } };

/**
 * Processes are started, and two of the machine's cores are all there may be.
 *
 * A test that fails is run once more: a neighbour may have had both cores. Whoever needed it is printed
 * at the end, by name and with its first failure, and is a bug to look into, not a test that passed.
 */
const processes = {
  retry: 1,
  pool: 'forks' as const,
  maxWorkers: 2,
  testTimeout: 60_000,
  hookTimeout: 60_000,
  teardownTimeout: 30_000,
};

export default defineConfig({
  resolve,
  ssr,
  test: {
    reporters: ['default', './test/plain-reporter.ts'],
    projects: [
      {
        extends: true,
        test: {
          name: 'unit',
          include: ['services/**/*.test.ts', 'clients/**/*.test.ts'],
          testTimeout: 20_000,
          sequence: { groupOrder: 1 },
        },
      },
      {
        extends: true,
        test: {
          name: 'tidy',
          include: ['test/*.test.ts', 'test/tidy/*.test.ts'],
          testTimeout: 60_000,
          sequence: { groupOrder: 1 },
        },
      },
      {
        extends: true,
        test: {
          ...processes,
          name: 'contract',
          include: ['test/contracts/**/*.test.ts'],
          sequence: { groupOrder: 2 },
        },
      },
      {
        extends: true,
        test: {
          ...processes,
          name: 'scenario',
          include: ['test/scenarios/**/*.test.ts', 'test/stack/**/*.test.ts'],
          testTimeout: 120_000,
          sequence: { groupOrder: 3 },
        },
      },
    ],
  },
});
