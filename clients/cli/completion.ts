/** What the shell offers at <TAB>: commands, options, and the names this state folder knows. */
import tab from '@bomb.sh/tab/commander';
import type { Command } from 'commander';
import { StateFolder, stateDirOf } from './state-folder.js';

/** Commands whose first operand is a worker. */
const WORKER_COMMANDS = ['watch', 'run', 'worker close', 'worker reopen'];

/** Adds `complete bash|zsh|fish|powershell`, which prints the script to source. */
export function addCompletion(program: Command): void {
  const root = tab(program);
  for (const name of WORKER_COMMANDS) {
    root.commands.get(name)?.argument('name', (offer) => {
      const state = new StateFolder(stateDirOf(undefined, process.env));
      for (const worker of state.workersNoted()) {
        offer(worker, 'worker');
      }
    });
  }
}
