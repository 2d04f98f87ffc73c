/** Waits for what another process will do, up to a deadline; what does not come is a failed assertion. */
import { AssertionError } from 'node:assert';
import { setTimeout as delay } from 'node:timers/promises';

const LOOK_EVERY_MS = 20;

/** The first value that is neither undefined nor false. What `look` throws counts as "not yet". */
export async function eventually<Value>(
  promise: string,
  look: () => Value | undefined | false | Promise<Value | undefined | false>,
  deadlineMs = 10_000,
): Promise<Value> {
  const giveUpAt = performance.now() + deadlineMs;
  let last: unknown;
  while (performance.now() < giveUpAt) {
    try {
      const seen = await look();
      if (seen !== undefined && seen !== false) {
        return seen;
      }
      last = undefined;
    } catch (error) {
      last = error;
    }
    await delay(LOOK_EVERY_MS);
  }
  throw new AssertionError({ message: `not within ${deadlineMs} ms: ${promise}${cause(last)}` });
}

/** The promise's value, unless it takes longer. */
export async function within<Value>(
  what: string,
  deadlineMs: number,
  value: Promise<Value>,
): Promise<Value> {
  const aborter = new AbortController();
  const late = delay(deadlineMs, undefined, { signal: aborter.signal }).then(() => {
    throw new AssertionError({ message: `not within ${deadlineMs} ms: ${what}` });
  });
  try {
    return await Promise.race([value, late]);
  } finally {
    aborter.abort();
    late.catch(() => undefined);
  }
}

function cause(error: unknown): string {
  return error instanceof Error ? ` (last: ${error.message})` : '';
}
