/**
 * One run of a program as a worker's agent: its own certificate, its presence, its seat, its terminal.
 *
 * The order is load-bearing: a terminal is only given to who sits there, a seat only to who is
 * present, and presence only to the run's own certificate.
 */

import type { LoadedIdentity } from '#chassis/identity-files.js';
import { AgentBind } from '#client/agent-bind.js';
import { isNearItsEnd } from '#client/bind-stream.js';
import { connect, type DataConnection } from '#client/connect.js';
import { Possession, type PossessionConsumer } from '#client/possession.js';
import type { StreamEnd } from '#client/stream-end.js';
import { designationOf, Workers } from '#client/workers.js';
import type { Worker } from '#gen/wheelhouse/authority/v1/authority.js';
import type { Geometry } from '#gen/wheelhouse/data/v1/data.js';
import type { Environment } from './environment.js';
import { identityOf, noIdentity } from './operator.js';
import type { RoleName, StateFolder } from './state-folder.js';

/** What to run, as it crosses to a detached process: plain values only. */
export interface RunRequest {
  readonly worker: string;
  /** Whose certificate; by default the worker's actor. */
  readonly as: RoleName | undefined;
  readonly argv: readonly string[];
  readonly env: Environment;
  readonly geometry: Geometry;
  readonly isHeadless: boolean;
}

export class AgentRun implements Disposable {
  readonly possession: Possession;
  /** Undefined when the agent sees no worker of that name. */
  readonly worker: Worker | undefined;
  /** Resolves once the terminal is gone. Never rejects. */
  readonly ended: Promise<StreamEnd>;
  readonly #bind: AgentBind;
  readonly #data: DataConnection;

  private constructor(
    bind: AgentBind,
    data: DataConnection,
    possession: Possession,
    worker: Worker | undefined,
  ) {
    this.worker = worker;
    this.#bind = bind;
    this.#data = data;
    this.possession = possession;
    this.ended = possession.ended;
  }

  /** Returns when the program runs. Throws a `RefusedError` or an `UnreachableError`. */
  static async start(
    state: StateFolder,
    authority: string,
    request: RunRequest,
    consumer: PossessionConsumer,
  ): Promise<AgentRun> {
    const own = await runCertificate(state, authority, request);
    const bind = await AgentBind.open(authority, own);
    try {
      const workers = new Workers(bind.authority);
      const all = await workers.list();
      const named = all.find(({ name, workerRef }) => [name, workerRef].includes(request.worker));
      // A name this agent has no worker of goes as it is: it is authority that says no.
      const worker =
        named === undefined ? { workerRef: request.worker, generation: 1n } : designationOf(named);
      const endpoint = await workers.occupy(worker);
      const data = connect(endpoint, 'data', bind.identity);
      try {
        const possession = await Possession.open(data, { ...request, worker }, consumer);
        return new AgentRun(bind, data, possession, named);
      } catch (error) {
        data[Symbol.dispose]();
        throw error;
      }
    } catch (error) {
      bind.close();
      throw error;
    }
  }

  /** Leaves. A terminal that still lives ends with it. */
  [Symbol.dispose](): void {
    this.#data[Symbol.dispose]();
    this.#bind.close();
  }
}

/** Obtained with the actor's identity, which is renewed on the way when it nears its end. */
async function runCertificate(
  state: StateFolder,
  authority: string,
  { as, worker }: RunRequest,
): Promise<LoadedIdentity> {
  let identity = as === undefined ? actorIdentity(state, worker) : identityOf(state, as);
  const roleName = as ?? actorOf(state, worker);
  if (isNearItsEnd(identity.identity.certificatePem, Date.now())) {
    identity = await renewed(state, authority, roleName, identity);
  }
  using connection = connect(authority, 'authority', identity);
  return await new Workers(connection).issueRunCertificate(identity.rootPem);
}

/** Whose certificate a run takes unless --as says another's. */
export function actorOf(state: StateFolder, worker: string): RoleName {
  return { role: 'agent', name: state.actorOf(worker) };
}

/** It came with the worker, so who has none is told to open that. */
function actorIdentity(state: StateFolder, worker: string): LoadedIdentity {
  const roleName = actorOf(state, worker);
  const identity = state.identity(roleName);
  if (identity === undefined) {
    const next = `open the worker there first (wheelhouse worker open ${worker}), or see wheelhouse worker list`;
    throw noIdentity(state, roleName, next);
  }
  return identity;
}

async function renewed(
  state: StateFolder,
  authority: string,
  roleName: RoleName,
  identity: LoadedIdentity,
): Promise<LoadedIdentity> {
  using bind = await AgentBind.open(authority, identity, {
    onRenewed: (newest) => state.writeIdentity(roleName, newest.identity),
  });
  return await bind.renew();
}
