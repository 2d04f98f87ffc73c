/** `wheelhouse worker list`: every position and how it stands. */
import type { Command } from 'commander';
import type { Worker } from '#gen/wheelhouse/authority/v1/authority.js';
import type { Colours } from '../colours.js';
import { EXIT_DONE } from '../exit-codes.js';
import { acting, type Ending, type Invocation } from '../invocation.js';
import { asOperator } from '../operator.js';
import { formatTable, visible } from '../table.js';
import { paintState, workerValue } from '../worker-words.js';

const EXAMPLES = `
States: vacant, running, watched (running, and you look at it), closing, closed.

Examples:
  wheelhouse worker list
  wheelhouse worker list --json`;

export function addWorkerList(worker: Command, ending: Ending): void {
  const command = worker
    .command('list')
    .description('list the positions and how each stands')
    .addHelpText('after', EXAMPLES);
  acting(ending, command, list);
}

async function list(invocation: Invocation): Promise<number> {
  return await asOperator(invocation, async ({ workers }) => {
    const all = await workers.list();
    const text =
      all.length === 0
        ? 'no workers yet; open one with: wheelhouse worker open NAME'
        : tableOf(all, invocation.colours);
    invocation.result(text, all.map(workerValue));
    return EXIT_DONE;
  });
}

function tableOf(workers: readonly Worker[], colours: Colours): string {
  const rows = workers.map((worker) => [
    worker.name,
    paintState(worker, colours),
    worker.actor,
    String(worker.workerGeneration),
    worker.openedBy,
    visible(worker.workspace),
  ]);
  return formatTable(['NAME', 'STATE', 'ACTOR', 'GENERATION', 'OPENED BY', 'WORKSPACE'], rows);
}
