/** `wheelhouse worker close`: ends a position, its looks first, then its terminal. */
import type { Command } from 'commander';
import { EXIT_DONE } from '../exit-codes.js';
import { acting, type Ending, type Invocation } from '../invocation.js';
import { asOperator, designate } from '../operator.js';

const EXAMPLES = `
The answer says what was acknowledged: fenced, and nothing is shown any more; or
fenced-by-disconnect, and its data node was cut off and the worker goes on closing.

Examples:
  wheelhouse worker close demo`;

export function addWorkerClose(worker: Command, ending: Ending): void {
  const command = worker
    .command('close')
    .description('end a position and the program in it')
    .argument('<name>', 'the worker')
    .addHelpText('after', EXAMPLES);
  acting(ending, command, close);
}

async function close(invocation: Invocation, [name = '']: readonly string[]): Promise<number> {
  return await asOperator(invocation, async ({ workers }) => {
    const { designation } = await designate(workers, name);
    const { isFenced } = await workers.close(designation);
    const fencing = isFenced ? 'fenced' : 'fenced-by-disconnect';
    const verb = isFenced ? 'closed' : 'closing';
    invocation.result(`${verb} ${name} (${fencing})`, { worker: name, fencing });
    if (!isFenced) {
      invocation.note('its data node has not answered; it is closed once that node is back');
    }
    return EXIT_DONE;
  });
}
