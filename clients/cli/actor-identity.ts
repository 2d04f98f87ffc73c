/** The identity of a worker's actor in the state folder: what `run` takes. */

import { readFileSync } from 'node:fs';
import { rootPaths } from '#chassis/identity-files.js';
import { isNearItsEnd } from '#client/bind-stream.js';
import type { Worker } from '#gen/wheelhouse/authority/v1/authority.js';
import type { Operator } from './operator.js';
import type { RoleName, StateFolder } from './state-folder.js';

/** Obtains it when it is missing or nears its end, and notes which worker it is for. */
export async function keepActorIdentity(
  state: StateFolder,
  { workers }: Operator,
  worker: Worker,
): Promise<void> {
  const roleName: RoleName = { role: 'agent', name: worker.actor };
  const current = state.identity(roleName);
  if (current === undefined || isNearItsEnd(current.identity.certificatePem, Date.now())) {
    const rootPem = readFileSync(rootPaths(state.dir).certificate, 'utf8');
    const { identity } = await workers.issueIdentity(worker.actor, rootPem);
    state.writeIdentity(roleName, identity);
  }
  state.noteActor(worker.name, worker.actor);
}
