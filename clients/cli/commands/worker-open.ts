/** `wheelhouse worker open`: makes a position for an agent, and leaves its identity here. */
import { resolve } from 'node:path';
import type { Command } from 'commander';
import { RefusedError } from '#client/call-errors.js';
import { keepActorIdentity } from '../actor-identity.js';
import { EXIT_DONE } from '../exit-codes.js';
import { acting, type Ending, type Invocation } from '../invocation.js';
import { asOperator } from '../operator.js';
import type { Endpoints } from '../state-folder.js';
import { workerValue } from '../worker-words.js';

interface OpenOptions {
  readonly actor?: string;
  readonly workspace?: string;
  readonly drive?: true;
  readonly delegation?: true;
}

const EXAMPLES = `
Examples:
  wheelhouse worker open demo
  wheelhouse worker open review --actor claude --workspace ~/src/project
  wheelhouse worker open pairing --drive       the operator may type into it`;

export function addWorkerOpen(worker: Command, ending: Ending): void {
  const command = worker
    .command('open')
    .description('open a position for an agent')
    .argument('<name>', 'its name: 1 to 63 of a-z 0-9 . _ -')
    .option('--actor <actor>', 'the agent it is for; by default its name')
    .option(
      '--workspace <dir>',
      'the folder its programs start in; by default this one, or the deployment’s',
    )
    .option('--drive', 'allow the operator to type into it')
    .option('--delegation', 'allow its agent to delegate')
    .addHelpText('after', EXAMPLES);
  acting<OpenOptions>(ending, command, open);
}

async function open(
  invocation: Invocation,
  [name = '']: readonly string[],
  options: OpenOptions,
): Promise<number> {
  return await asOperator(invocation, async (operator) => {
    const asked = {
      name,
      actor: options.actor ?? '',
      workspace: workspaceOf(operator.endpoints, options.workspace),
      driveAllowed: options.drive === true,
      delegationAllowed: options.delegation === true,
    };
    const worker = await operator.workers.open(asked).catch((error: unknown) => {
      throw withValue(error, { ...asked, actor: options.actor ?? name });
    });
    await keepActorIdentity(invocation.state, operator, worker);
    invocation.result(
      `opened ${worker.name} for agent ${worker.actor} in ${worker.workspace}`,
      workerValue(worker),
    );
    invocation.note(`next: wheelhouse run ${worker.name} -- COMMAND`);
    return EXIT_DONE;
  });
}

/** On one machine a path is the caller's; services elsewhere do not have the folder it is in. */
export function workspaceOf({ workspace = '.' }: Endpoints, given = '.'): string {
  return resolve(workspace, given);
}

/** A field that does not do is told with what was asked for: authority repeats nothing. */
function withValue(error: unknown, asked: Readonly<Record<string, unknown>>): unknown {
  if (!(error instanceof RefusedError) || error.refusal.reason !== 'REQUEST_INVALID') {
    return error;
  }
  const { reason, facts } = error.refusal;
  const value = asked[facts['field'] ?? ''];
  return typeof value === 'string'
    ? new RefusedError({ reason, facts: { ...facts, value } })
    : error;
}
