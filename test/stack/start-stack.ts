/** Starts a stack at the depth that this run is about. */
import { startContainers } from './containers.js';
import { depth } from './depth.js';
import { startInProcess } from './in-process.js';
import { startProcesses } from './processes.js';
import type { Depth, Stack, StackOptions } from './stack.js';

const STARTS = {
  'in-process': startInProcess,
  processes: startProcesses,
  containers: startContainers,
} as const satisfies Record<Depth, (options: StackOptions) => Promise<Stack>>;

export async function startStack(options: StackOptions = {}): Promise<Stack> {
  return await STARTS[depth](options);
}
