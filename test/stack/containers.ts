import type { Stack, StackOptions } from './stack.js';

export async function startContainers(_options: StackOptions): Promise<Stack> {
  throw new Error('not yet');
}
