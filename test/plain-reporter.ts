/**
 * Ends a run in one plain line, `N passed, N failed`, that a person and a script read alike.
 *
 * What tests have measured is printed, and judged by whoever reads it. Every skip is printed with its reason. Where CI is set, a skip without one fails the run: a test
 * that quietly stopped running is a test that was removed.
 */
import type { SerializedError } from 'vitest';
import type { Reporter, TestCase, TestModule } from 'vitest/node';

export interface Tally {
  readonly passed: number;
  readonly failed: number;
  readonly skipped: readonly Skip[];
}

export interface Skip {
  readonly name: string;
  readonly reason: string | undefined;
}

/** What vitest loads by this file's name. */
// biome-ignore lint/style/noDefaultExport: vitest loads a reporter by the default export of its file
export default class PlainReporter implements Reporter {
  onTestRunEnd(modules: readonly TestModule[], unhandledErrors: readonly SerializedError[]): void {
    const tally = tallyOf(modules, unhandledErrors.length);
    for (const { name, reason } of tally.skipped) {
      process.stdout.write(`skipped: ${name}: ${reason ?? 'NO REASON GIVEN'}\n`);
    }
    for (const figure of figuresOf(modules)) {
      process.stdout.write(`figure: ${figure}\n`);
    }
    for (const test of triedAgain(modules)) {
      process.stdout.write(`tried again: ${test}\n`);
    }
    const inCi = process.env['CI'] === 'true';
    if (tally.failed > 0 || (inCi && tally.skipped.some(({ reason }) => reason === undefined))) {
      process.exitCode = 1;
    }
    process.stdout.write(`${closingLine(tally)}\n`);
  }
}

/** The last line of the run. */
export function closingLine({ passed, failed, skipped }: Tally): string {
  const line = `${passed} passed, ${failed} failed`;
  return skipped.length === 0 ? line : `${line}, ${skipped.length} skipped`;
}

/** A file that could not be read and an error outside of any test count as failures of their own. */
function tallyOf(modules: readonly TestModule[], unhandledErrorCount: number): Tally {
  const tests = modules.flatMap((module) => [...module.children.allTests()]);
  const inState = (state: string): TestCase[] =>
    tests.filter((test) => test.result().state === state);
  const brokenFileCount = modules.filter((module) => module.errors().length > 0).length;
  return {
    passed: inState('passed').length,
    failed: inState('failed').length + brokenFileCount + unhandledErrorCount,
    skipped: [...inState('skipped'), ...inState('pending')].map(skipOf),
  };
}

declare module 'vitest' {
  interface TaskMeta {
    /** What a test measured: no limit is asserted, as the machine may be anybody's. */
    figures?: string[];
  }
}

function figuresOf(modules: readonly TestModule[]): readonly string[] {
  return modules.flatMap((module) =>
    [...module.children.allTests()].flatMap((test) =>
      (test.meta().figures ?? []).map((figure) => `${module.project.name}: ${figure}`),
    ),
  );
}

/** Who passed at the second try, with what it failed by at the first. */
function triedAgain(modules: readonly TestModule[]): readonly string[] {
  return modules
    .flatMap((module) => [...module.children.allTests()])
    .filter((test) => test.diagnostic()?.flaky)
    .map((test) => `${test.fullName}: ${test.result().errors?.[0]?.message.split('\n')[0]}`);
}

function skipOf(test: TestCase): Skip {
  const result = test.result();
  const note = result.state === 'skipped' ? result.note : undefined;
  return { name: test.fullName, reason: note };
}
