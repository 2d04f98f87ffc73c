/**
 * Proves that a scenario would notice the absence of what it is about.
 *
 * A scenario takes the compiled output to run. It passes against the product; against a mutant, the
 * product without the check, it must fail, and by an assertion: a harness that breaks proves nothing.
 */
import { test } from 'vitest';
import { depth } from './depth.js';
import { type Mutation, makeMutant } from './mutant.js';

export interface Subject {
  readonly distDir: string;
}

export type Scenario = (subject: Subject) => Promise<void>;

/**
 * Registers a test that passes only when the scenario fails against the mutant.
 *
 * Where the stack is made of processes: what a mutant breaks ends it, and in-process that would end the
 * test. In containers only where `STACK` asks for them alone: a scenario's power to notice does not
 * depend on what carries it, so twice is for whoever changes the stack.
 */
export function falsifier(
  law: string,
  mutation: Mutation | readonly Mutation[],
  scenario: Scenario,
): void {
  if (!falsifies) {
    return;
  }
  test(`${law}: noticed when the check is removed`, async () => {
    using mutant = makeMutant(...[mutation].flat());
    await mustFail(() => scenario(mutant));
  });
}

const falsifies =
  depth === 'processes' || (depth === 'containers' && process.env['FALSIFIERS'] === 'everywhere');

/** Throws unless `run` fails by an assertion. */
export async function mustFail(run: () => Promise<void>): Promise<void> {
  const failure = await run().then(
    () => undefined,
    (error: unknown) => ({ error }),
  );
  if (failure === undefined) {
    throw new Error('the scenario passes without the check it is about');
  }
  if (!isAssertion(failure.error)) {
    throw new Error('the scenario broke instead of failing', { cause: failure.error });
  }
}

/** What `expect`, `assert` and `eventually` throw, also when disposing threw on top of it. */
function isAssertion(error: unknown): boolean {
  if (error instanceof Error && error.name === 'AssertionError') {
    return true;
  }
  const both = error as { readonly error?: unknown; readonly suppressed?: unknown };
  const isSuppressed = error instanceof Error && error.name === 'SuppressedError';
  return isSuppressed && (isAssertion(both.suppressed) || isAssertion(both.error));
}
