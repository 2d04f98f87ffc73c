/** What a scenario measured, for the end of the run's report. */
import type { TestContext } from 'vitest';

/** Notes how long something took that began at `sinceMs` of `performance.now()`. Falsifiers measure nothing: no context. */
export function took(context: TestContext | undefined, what: string, sinceMs: number): void {
  if (context === undefined) {
    return;
  }
  const { meta } = context.task;
  meta.figures ??= [];
  meta.figures.push(`${what}: ${Math.round(performance.now() - sinceMs)} ms`);
}
