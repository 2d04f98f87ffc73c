/** What a scenario measured, for the end of the run's report. */
import type { TestContext } from 'vitest';

/** Notes how long something took that began at `sinceMs` of `performance.now()`. */
export function took({ task }: TestContext, what: string, sinceMs: number): void {
  task.meta.figures ??= [];
  task.meta.figures.push(`${what}: ${Math.round(performance.now() - sinceMs)} ms`);
}
