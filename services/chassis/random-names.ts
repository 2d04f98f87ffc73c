/** Fresh names from the machine's randomness: 128 bits, so that none can be guessed. */
import { randomBytes } from 'node:crypto';
import type { FreshNames } from '#kernel/fresh-names.js';

export const randomNames: FreshNames = {
  fresh: (prefix) => `${prefix}_${randomBytes(16).toString('hex')}`,
};
