/** What the stacks of this run are made of: `STACK`, which vitest.config.ts sets for each project. */
import { type Depth, depths } from './stack.js';

/** Throws on a STACK that is none. */
export function depthOf(env: Readonly<Record<string, string | undefined>>): Depth {
  const wanted = env['STACK'] ?? 'processes';
  const found = depths.find((each) => each === wanted);
  if (found === undefined) {
    throw new Error(`STACK is one of ${depths.join(', ')}, not ${wanted}`);
  }
  return found;
}

/** The depth of this run. */
export const depth = depthOf(process.env);

/** Where a plane has a process of its own, whose memory and descriptors can be told from the test's. */
export const ownProcesses: readonly Depth[] = ['processes', 'containers'];

/** Registers what is inside only at the depths at which it has a subject. */
export function at(wanted: readonly Depth[], register: () => void): void {
  if (wanted.includes(depth)) {
    register();
  }
}
