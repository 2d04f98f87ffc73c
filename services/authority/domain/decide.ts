/** Commands in, facts out: the one door through which the world changes. */
import { assertNever } from '#kernel/bug.js';
import type { Outcome } from '#kernel/outcome.js';
import { generation } from '#kernel/refs.js';
import { decideActivate, decideRelease, decideReserve } from './attachments.js';
import { decideBind } from './bind.js';
import { decideIssueIdentity, decideIssueRunCertificate, decideRenew } from './certificates.js';
import type { Command } from './command.js';
import { type Decision, facts } from './decision.js';
import { decideOccupy, decideVacate } from './occupancy.js';
import { decideReconcile } from './reconcile.js';
import type { State, Surroundings } from './state.js';
import {
  decideCloseWorker,
  decideFinishClosing,
  decideOpenWorker,
  decideReopenWorker,
} from './workers.js';

/** Decides one command against the state as the commands before it leave it. */
export function decide(
  command: Command,
  state: State,
  surroundings: Surroundings,
): Outcome<Decision> {
  switch (command.kind) {
    case 'start-world': {
      const { worldIncarnation } = command;
      const worldGeneration = generation(state.world.worldGeneration + 1n);
      return facts(state.presence, [{ kind: 'world-started', worldIncarnation, worldGeneration }]);
    }
    case 'bind':
      return decideBind(command, state, surroundings.limits);
    case 'renew':
      return decideRenew(command, state, surroundings);
    case 'open-worker':
      return decideOpenWorker(command, state, surroundings);
    case 'close-worker':
      return decideCloseWorker(command, state, surroundings);
    case 'finish-closing':
      return decideFinishClosing(command, state);
    case 'reopen-worker':
      return decideReopenWorker(command, state, surroundings);
    case 'issue-identity':
      return decideIssueIdentity(command, state, surroundings);
    case 'issue-run-certificate':
      return decideIssueRunCertificate(command, state, surroundings);
    case 'occupy':
      return decideOccupy(command, state, surroundings);
    case 'vacate':
      return decideVacate(command, state);
    case 'reserve':
      return decideReserve(command, state, surroundings);
    case 'activate':
      return decideActivate(command, state);
    case 'release':
      return decideRelease(command, state);
    case 'reconcile':
      return decideReconcile(command, state);
    default:
      return assertNever(command);
  }
}
