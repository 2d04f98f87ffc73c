/** The RPC table of authority: one file each. */
import type { Exposed } from '#chassis/grpc-server.js';
import { toldFacts } from '#chassis/refusal-status.js';
import { type Handle, unary } from '#chassis/unary.js';
import {
  type AuthorityServiceServer,
  AuthorityServiceService,
} from '#gen/wheelhouse/authority/v1/authority.js';
import { bind } from './rpc/bind.js';
import { closeWorker } from './rpc/close-worker.js';
import { resolveDefinition } from './rpc/encoded-answers.js';
import { followStatus } from './rpc/follow-status.js';
import { issueIdentity } from './rpc/issue-identity.js';
import { issueRunCertificate } from './rpc/issue-run-certificate.js';
import { listWorkers } from './rpc/list-workers.js';
import { occupy } from './rpc/occupy.js';
import { openWorker } from './rpc/open-worker.js';
import { reopenWorker } from './rpc/reopen-worker.js';
import { resolve } from './rpc/resolve.js';
import type { Room } from './rpc/room.js';
import { tail } from './rpc/tail.js';

export function authorityService(room: Room): Exposed {
  const implementation: AuthorityServiceServer = {
    bind: bind(room),
    openWorker: unary(logged(room, 'OpenWorker', openWorker(room))),
    closeWorker: unary(logged(room, 'CloseWorker', closeWorker(room))),
    reopenWorker: unary(logged(room, 'ReopenWorker', reopenWorker(room))),
    listWorkers: unary(logged(room, 'ListWorkers', listWorkers(room))),
    issueIdentity: unary(logged(room, 'IssueIdentity', issueIdentity(room))),
    issueRunCertificate: unary(logged(room, 'IssueRunCertificate', issueRunCertificate(room))),
    occupy: unary(logged(room, 'Occupy', occupy(room))),
    resolve: resolve(room),
    tail: tail(room),
    followStatus: followStatus(room),
  };
  return {
    definition: { ...AuthorityServiceService, resolve: resolveDefinition },
    implementation,
  };
}

/** Questions of a resolve stream are not logged: a presentation leaves no trace (law P9). */
function logged<Request, Response>(
  { logger }: Room,
  rpc: string,
  handle: Handle<Request, Response>,
): Handle<Request, Response> {
  return async (request, caller) => {
    const outcome = await handle(request, caller);
    if (outcome.kind === 'refused') {
      const { reason, facts } = outcome.refusal;
      logger.info({ rpc, reason, facts: toldFacts(facts) }, 'refused');
    }
    return outcome;
  };
}
