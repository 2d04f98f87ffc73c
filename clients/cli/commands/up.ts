/** `wheelhouse up`: brings the services up and keeps them. */
import { closeSync } from 'node:fs';
import { type Command, InvalidArgumentError, Option } from 'commander';
import { reportFailure, reportReady, startInBackground } from '../background.js';
import { EXIT_DONE } from '../exit-codes.js';
import { acting, type Ending, type Invocation } from '../invocation.js';
import { openLog } from '../log-files.js';
import { isUp, Services } from '../services.js';
import { onEndingSignal } from '../signals.js';
import type { Endpoints } from '../state-folder.js';
import { servicesOf } from './status.js';

interface UpOptions {
  readonly detach?: true;
  readonly bus: string;
  /** Set by `up -d` for the process it leaves behind. */
  readonly report?: true;
}

const EXAMPLES = `
On first start it makes the state folder, a development root and the first identities. Logs go to
the folder's log/. Ctrl-C drains: agents are ended, then the services. When they are up already,
up -d says where and is done; up without -d is refused, as it could not keep them.

Examples:
  wheelhouse up
  wheelhouse up -d && wheelhouse status
  wheelhouse --state /srv/wheelhouse up`;

const DEVELOPMENT_ONLY =
  'note: a single-user machine is for development: programs in terminals run as you and can read what you can';

export function addUp(program: Command, ending: Ending): void {
  const command = program
    .command('up')
    .description('start the services and keep them running')
    .option('-d, --detach', 'in the background; returns when they are ready')
    .option('--bus <direct|nats://…>', 'how hints travel between the services', parseBus, 'direct')
    .addOption(new Option('--report').hideHelp())
    .addHelpText('after', EXAMPLES);
  acting<UpOptions>(ending, command, up);
}

async function up(
  invocation: Invocation,
  _operands: readonly string[],
  options: UpOptions,
): Promise<number> {
  if (options.detach === true) {
    const before = isUp(invocation.state) ? await servingBefore(invocation) : undefined;
    if (before !== undefined) {
      announce(invocation, before);
      return EXIT_DONE;
    }
    announce(invocation, await upInBackground(invocation, options.bus));
    return EXIT_DONE;
  }
  const hold = holdUntilSignal();
  const services = await startServices(invocation, options);
  try {
    if (options.report === true) {
      reportReady(services.endpoints);
    } else {
      announce(invocation, services.endpoints);
    }
    await keepUp(services, hold);
    invocation.note('draining …');
  } finally {
    await services.drain();
  }
  invocation.note('down');
  return EXIT_DONE;
}

/** What is up already does as well. Undefined while it does not answer: it may be going down. */
async function servingBefore(invocation: Invocation): Promise<Endpoints | undefined> {
  const { state, note } = invocation;
  const endpoints = state.endpoints();
  const services = await servicesOf(invocation);
  if (endpoints === undefined || !services.every(({ health }) => health === 'serving')) {
    return undefined;
  }
  note(`the services are up already, as process ${state.up()?.pid ?? 'unknown'}`);
  return endpoints;
}

/** Returns once a signal asks to end. Throws when a service cannot be kept alive. */
export async function keepUp(services: Services, hold: Promise<undefined>): Promise<void> {
  const failure = await Promise.race([hold, services.gaveUp]);
  if (failure !== undefined) {
    throw failure;
  }
}

async function startServices(
  { state, note }: Invocation,
  { bus, report }: UpOptions,
): Promise<Services> {
  try {
    return await Services.start(state, { note, bus });
  } catch (error) {
    if (report === true) {
      reportFailure(error);
    }
    throw error;
  }
}

async function upInBackground({ state, note }: Invocation, bus: string): Promise<Endpoints> {
  note('starting the services in the background …');
  state.make();
  state.makeFolder(state.path('log'));
  const log = openLog(state.path('log', 'up.log'));
  try {
    await startInBackground({
      what: 'the background process',
      args: ['--state', state.dir, 'up', '--report', '--bus', bus],
      message: undefined,
      stderr: log,
    });
  } finally {
    closeSync(log);
  }
  return state.endpoints() ?? { authority: '', data: {} };
}

/** Says once that everything is ready. */
export function announce(invocation: Invocation, endpoints: Endpoints): void {
  const data = Object.entries(endpoints.data).map(([node, endpoint]) => `data.${node}=${endpoint}`);
  invocation.result(`ready authority=${endpoints.authority} ${data.join(' ')}`, {
    ready: endpoints,
  });
  invocation.note(DEVELOPMENT_ONLY);
}

/** Resolves at the first signal that asks to end; one more does not wait for the drain. */
export function holdUntilSignal(): Promise<undefined> {
  return new Promise((resolve) => {
    onEndingSignal(
      () => resolve(undefined),
      () => process.kill(process.pid, 'SIGKILL'),
    );
  });
}

function parseBus(text: string): string {
  if (text === 'direct' || /^nats:\/\/[^/\s]+$/.test(text)) {
    return text;
  }
  throw new InvalidArgumentError('It is direct, or nats://HOST:PORT.');
}
