/** `wheelhouse worker reopen`: makes a closed position anew, one generation later. */
import type { Command } from 'commander';
import { keepActorIdentity } from '../actor-identity.js';
import { EXIT_DONE } from '../exit-codes.js';
import { acting, type Ending, type Invocation } from '../invocation.js';
import { asOperator, designate } from '../operator.js';
import { workerValue } from '../worker-words.js';

const EXAMPLES = `
Examples:
  wheelhouse worker reopen demo`;

export function addWorkerReopen(worker: Command, ending: Ending): void {
  const command = worker
    .command('reopen')
    .description('open a closed position again, as another generation')
    .argument('<name>', 'the worker')
    .addHelpText('after', EXAMPLES);
  acting(ending, command, reopen);
}

async function reopen(invocation: Invocation, [name = '']: readonly string[]): Promise<number> {
  return await asOperator(invocation, async (operator) => {
    const { designation } = await designate(operator.workers, name);
    const worker = await operator.workers.reopen(designation);
    await keepActorIdentity(invocation.state, operator, worker);
    invocation.result(
      `reopened ${worker.name}, generation ${worker.workerGeneration}`,
      workerValue(worker),
    );
    return EXIT_DONE;
  });
}
