/** The command line: what there is, in one place. */
import { Command } from 'commander';
import { addDemo } from './commands/demo.js';
import { addDoctor } from './commands/doctor.js';
import { addDown } from './commands/down.js';
import { addIdentityIssue } from './commands/identity-issue.js';
import { addIdentityList } from './commands/identity-list.js';
import { addRun } from './commands/run.js';
import { addStatus } from './commands/status.js';
import { addUp } from './commands/up.js';
import { addWatch } from './commands/watch.js';
import { addWorkerClose } from './commands/worker-close.js';
import { addWorkerList } from './commands/worker-list.js';
import { addWorkerOpen } from './commands/worker-open.js';
import { addWorkerReopen } from './commands/worker-reopen.js';
import { addCompletion } from './completion.js';
import { DETACHED_RUN, serveDetached } from './detached-run.js';
import { acting, type Ending } from './invocation.js';

const EXAMPLES = `
Exit codes: 0 done, 2 usage, 3 refused by name, 4 nobody answers; run has the program's own.

Examples:
  wheelhouse up -d                      start the services
  wheelhouse worker open demo           a position for an agent
  wheelhouse run demo -- bash           the agent's side: a program in its terminal
  wheelhouse watch demo                 the operator's side: see it, byte for byte
  source <(wheelhouse complete bash)    completion, also for zsh and fish`;

export function buildProgram(ending: Ending, version: string): Command {
  const program = new Command('wheelhouse')
    .description('The room from which a person watches and steers AI agents in real terminals.')
    .version(version, '-V, --version')
    .option('--state <dir>', 'the state folder (WHEELHOUSE_STATE)')
    .option(
      '--as <role/name>',
      'the identity to use; by default human-control of this user, or the only one',
    )
    .option('--json', 'results, and errors on stderr, for programs')
    .option('-q, --quiet', 'only results and errors')
    .showHelpAfterError('(--help shows examples)')
    .addHelpText('after', EXAMPLES)
    .exitOverride();
  addUp(program, ending);
  addDown(program, ending);
  addStatus(program, ending);
  addDoctor(program, ending);
  addWorkerCommands(program, ending);
  addRun(program, ending);
  addWatch(program, ending);
  addIdentityCommands(program, ending);
  addDemo(program, ending);
  addCompletion(program);
  addHidden(program, ending);
  return program;
}

function addWorkerCommands(program: Command, ending: Ending): void {
  const worker = program.command('worker').description('open, close, reopen and list positions');
  addWorkerOpen(worker, ending);
  addWorkerClose(worker, ending);
  addWorkerReopen(worker, ending);
  addWorkerList(worker, ending);
  worker.addHelpText(
    'after',
    '\nExamples:\n  wheelhouse worker open demo\n  wheelhouse worker list',
  );
}

function addIdentityCommands(program: Command, ending: Ending): void {
  const identity = program.command('identity').description('list and issue certificates');
  addIdentityList(identity, ending);
  addIdentityIssue(identity, ending);
  identity.addHelpText(
    'after',
    '\nExamples:\n  wheelhouse identity list\n  wheelhouse identity issue human-control/ada',
  );
}

/** What `run -d` leaves in the background. */
function addHidden(program: Command, ending: Ending): void {
  const detached = program.command(DETACHED_RUN, { hidden: true });
  acting(ending, detached, async ({ state }) => {
    await serveDetached(state);
    return 0;
  });
}
