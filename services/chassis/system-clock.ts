/** The machine's clock behind the kernel's port. */
import type { Clock } from '#kernel/clock.js';

export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  after: (delayMs, call) => {
    const timer = setTimeout(call, delayMs);
    return { [Symbol.dispose]: () => clearTimeout(timer) };
  },
};
