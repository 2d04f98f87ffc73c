/** Which tests there are, by what they need and how long they may take. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { defineConfig } from 'vitest/config';
import { depths } from './test/stack/stack.js';

/**
 * Our own `#…` imports lead to the sources here. Not by a condition: Node would be given it as well, and
 * compiled output that a test loads must find compiled output.
 */
const { imports } = JSON.parse(readFileSync('package.json', 'utf8')) as {
  readonly imports: Readonly<Record<string, { readonly source: string }>>;
};
const alias = Object.entries(imports).map(([pattern, { source }]) => ({
  find: new RegExp(`^${pattern.replace('*', '(.*)')}$`),
  replacement: join(import.meta.dirname, source.replace('*', '$1')),
}));

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

/** Files that are about processes alone. */
const OWN_PROCESSES = ['test/scenarios/wall-clock.test.ts'];

/**
 * The scenarios, once for each thing a stack can be made of. `STACK` chooses one of them: a test reads
 * there what its stack is to be made of.
 */
const scenarios = depths
  .filter((depth) => depth === (process.env['STACK'] ?? depth))
  .map((depth, index) => ({
    extends: true as const,
    test: {
      ...processes,
      name: depth === 'processes' ? 'scenario' : `scenario ${depth}`,
      include: ['test/scenarios/**/*.test.ts'],
      exclude: depth === 'in-process' ? OWN_PROCESSES : [],
      testTimeout: 120_000,
      sequence: { groupOrder: 3 + index },
      env: { STACK: depth },
      ...(depth === 'containers'
        ? {
            globalSetup: ['test/stack/containers-setup.ts'],
            setupFiles: ['test/stack/containers-needed.ts'],
          }
        : {}),
    },
  }));

export default defineConfig({
  resolve: { alias },
  test: {
    reporters: ['default', './test/plain-reporter.ts'],
    // Services assembled in a test's own process are those that were compiled.
    server: { deps: { external: [/^(?:(?!\/node_modules\/).)*\/dist\//] } },
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
          include: ['test/contracts/**/*.test.ts', 'test/stack/**/*.test.ts'],
          sequence: { groupOrder: 2 },
        },
      },
      {
        extends: true,
        test: {
          ...processes,
          name: 'deploy',
          include: ['test/deploy/**/*.test.ts'],
          testTimeout: 300_000,
          hookTimeout: 600_000,
          sequence: { groupOrder: 6 },
        },
      },
      {
        extends: true,
        test: {
          ...processes,
          name: 'conformance',
          include: ['test/conformance/**/*.test.ts'],
          testTimeout: 120_000,
          hookTimeout: 300_000,
          sequence: { groupOrder: 7 },
        },
      },
      ...scenarios,
    ],
  },
});
