/** Acting as the operator: present first, then the work, then gone. */

import type { LoadedIdentity } from '#chassis/identity-files.js';
import { isNearItsEnd } from '#client/bind-stream.js';
import { RefusedError, UnreachableError } from '#client/call-errors.js';
import { ControlBind } from '#client/control-bind.js';
import type { Designation } from '#client/presentation.js';
import { designationOf, Workers } from '#client/workers.js';
import type { Worker } from '#gen/wheelhouse/authority/v1/authority.js';
import type { Invocation } from './invocation.js';
import { isUp } from './services.js';
import { type Endpoints, operatorName, type RoleName, type StateFolder } from './state-folder.js';

export interface Operator {
  readonly control: ControlBind;
  readonly workers: Workers;
  readonly endpoints: Endpoints;
}

/**
 * Is present for as long as the work takes. Throws a `RefusedError` or an `UnreachableError`.
 * A certificate in the last third of its life is renewed on the way.
 */
export async function asOperator<Result>(
  invocation: Invocation,
  work: (operator: Operator) => Promise<Result>,
): Promise<Result> {
  const roleName = operatorOf(invocation);
  const endpoints = answeringEndpointsOf(invocation, roleName);
  const identity = identityOf(invocation.state, roleName);
  using control = await ControlBind.open(endpoints.authority, identity, {
    onRenewed: (newest) => invocation.state.writeIdentity(roleName, newest.identity),
  });
  if (isNearItsEnd(identity.identity.certificatePem, Date.now())) {
    await control.renew();
  }
  return await work({ control, workers: new Workers(control.authority), endpoints });
}

/**
 * `--as`, or human-control of the current user; where the folder has none of that name and one of
 * another, that one: a deployment names its operator, and need not know who has an account here.
 */
export function operatorOf({ as, state }: Pick<Invocation, 'as' | 'state'>): RoleName {
  const own: RoleName = { role: 'human-control', name: operatorName() };
  if (as !== undefined || state.identity(own) !== undefined) {
    return as ?? own;
  }
  const [only, ...others] = state.identities().filter(({ role }) => role === own.role);
  return only !== undefined && others.length === 0 ? only : own;
}

/** Where the services are. Throws an `UnreachableError` when none was ever started here. */
export function endpointsOf({ state }: Invocation): Endpoints {
  const endpoints = state.endpoints();
  if (endpoints === undefined) {
    const why = state.problem() ?? `no services were started from ${state.dir}`;
    throw new UnreachableError('authority', why);
  }
  return endpoints;
}

/**
 * The same for who may have no identity to ask with: services of this machine that are down are told
 * as that, and not as a missing identity.
 */
export function answeringEndpointsOf(invocation: Invocation, roleName: RoleName): Endpoints {
  const endpoints = endpointsOf(invocation);
  const { state } = invocation;
  if (state.identity(roleName) === undefined && state.root() !== undefined && !isUp(state)) {
    throw new UnreachableError('authority', `the services of ${state.dir} are down`);
  }
  return endpoints;
}

/** Throws a `RefusedError` (`caller-unidentified`) when the folder has none of that name. */
export function identityOf(state: StateFolder, roleName: RoleName): LoadedIdentity {
  const identity = state.identity(roleName);
  if (identity === undefined) {
    throw noIdentity(state, roleName, howToIssue(roleName));
  }
  return identity;
}

/** Found out here, before anybody was asked. */
export function noIdentity(
  state: StateFolder,
  { role, name }: RoleName,
  next: string,
): RefusedError {
  const found = `there is no identity ${role}/${name} in ${state.dir}`;
  return new RefusedError({ reason: 'CALLER_UNIDENTIFIED', facts: { found, next } });
}

function howToIssue({ role, name }: RoleName): string {
  const issue = `wheelhouse identity issue ${role}/${name}`;
  return role === 'agent'
    ? `issue it with ${issue}, once a worker of yours names it (worker open NAME --actor ${name})`
    : `issue it with ${issue}; wheelhouse identity list shows those there are`;
}

export interface Designated {
  readonly designation: Designation;
  /** Undefined when no worker of that name is to be seen. */
  readonly worker: Worker | undefined;
}

/**
 * The worker of a name, as it stands now. A name that nobody has is passed on as it is, so that it
 * is authority that says no, and in its own order.
 */
export async function designate(
  workers: Workers,
  name: string,
  generation?: bigint,
): Promise<Designated> {
  const all = await workers.list();
  const worker = all.find((one) => one.name === name || one.workerRef === name);
  const seen = worker === undefined ? { workerRef: name, generation: 1n } : designationOf(worker);
  return { worker, designation: { ...seen, generation: generation ?? seen.generation } };
}
