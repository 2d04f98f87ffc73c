/** `wheelhouse status`: where the services are, who you are to them, and whether they answer. */
import type { Command } from 'commander';
import type { Colours } from '../colours.js';
import { EXIT_DONE, EXIT_UNREACHABLE } from '../exit-codes.js';
import { type Health, type HealthReport, healthOf, troubles } from '../health.js';
import { acting, type Ending, type Invocation } from '../invocation.js';
import { operatorOf } from '../operator.js';
import { isUp, leftBehind } from '../services.js';
import type { StateFolder } from '../state-folder.js';
import { formatTable } from '../table.js';

const EXAMPLES = `
Exit code: 0 when every service serves, 4 otherwise. A part that is away may leave its service serving.

Examples:
  wheelhouse status
  wheelhouse status --json`;

export interface ServiceStatus {
  readonly service: string;
  readonly endpoint: string;
  readonly health: Health | 'no identity';
  /** What the service is made of; empty when it does not say. */
  readonly parts: HealthReport['parts'];
}

export function addStatus(program: Command, ending: Ending): void {
  const command = program
    .command('status')
    .description('show the state folder, the services and the identity in use')
    .addHelpText('after', EXAMPLES);
  acting(ending, command, status);
}

async function status(invocation: Invocation): Promise<number> {
  const { state, colours } = invocation;
  const problem = state.problem();
  if (problem !== undefined) {
    invocation.warn(invocation.isJson ? JSON.stringify({ fault: problem }) : `fault: ${problem}`);
    return EXIT_UNREACHABLE;
  }
  const { role, name } = operatorOf(invocation);
  const identity = `${role}/${name}`;
  const services = await servicesOf(invocation);
  const held = isUp(state);
  const rows = [
    ['state folder', state.exists ? state.dir : `${state.dir} (not made yet)`],
    ['identity', state.identity({ role, name }) === undefined ? `${identity} (missing)` : identity],
    ['up', upWords(state, held)],
    ...services.flatMap((each) => serviceRows(each, colours)),
  ];
  invocation.result(formatTable(['WHAT', 'HOW'], rows), {
    stateDir: state.dir,
    identity,
    isUp: held,
    services,
  });
  const isServing = services.length > 0 && services.every(({ health }) => health === 'serving');
  if (!services.some(({ health }) => health === 'serving' || health === 'not serving')) {
    invocation.note('next: wheelhouse up');
  }
  return isServing ? EXIT_DONE : EXIT_UNREACHABLE;
}

/** The service, then whatever of it does not serve and what that means. */
function serviceRows(status: ServiceStatus, colours: Colours): readonly string[][] {
  const { service, endpoint, health, parts } = status;
  const word = health === 'serving' ? colours.good(health) : colours.bad(health);
  const absent =
    health === 'not serving' || health === 'serving' ? troubles({ health, parts }) : [];
  return [
    [service, `${endpoint} ${word}`],
    ...absent.map(([part, meaning]) => [
      `${service} ${part}`,
      `${colours.bad('not serving')}: ${meaning}`,
    ]),
  ];
}

function upWords(state: StateFolder, isHeld: boolean): string {
  if (isHeld) {
    return `process ${state.up()?.pid ?? 'unknown'}`;
  }
  return leftBehind(state).length === 0
    ? 'no'
    : 'no: it was killed, its services go on; wheelhouse up begins anew, down ends them';
}

/** Every service the folder knows of, and whether it answers. */
export async function servicesOf(invocation: Invocation): Promise<readonly ServiceStatus[]> {
  const endpoints = invocation.state.endpoints();
  if (endpoints === undefined) {
    return [];
  }
  const nodes = Object.entries(endpoints.data);
  return await Promise.all([
    statusOf(invocation, 'authority', 'authority', endpoints.authority),
    ...nodes.map(([node, endpoint]) => statusOf(invocation, `data.${node}`, 'data', endpoint)),
  ]);
}

async function statusOf(
  invocation: Invocation,
  service: string,
  plane: 'authority' | 'data',
  endpoint: string,
): Promise<ServiceStatus> {
  const identity = invocation.state.identity(operatorOf(invocation));
  if (identity === undefined) {
    return { service, endpoint, health: 'no identity', parts: {} };
  }
  return { service, endpoint, ...(await healthOf({ endpoint, plane, identity })) };
}
