/** Who may be given a certificate, and what is remembered of it. Signing itself is the edge's. */
import { andThen, granted, type Outcome, refused } from '#kernel/outcome.js';
import type { IssueIdentity, IssueRunCertificate, Renew } from './command.js';
import { admitGrowth, type Decision, facts } from './decision.js';
import { livingPeer, withPeer } from './presence.js';
import { admitRenewal } from './renewals.js';
import type { State, Surroundings } from './state.js';
import type { World, WorldEvent } from './world.js';

/**
 * Lets the caller's peer live on with a new certificate.
 *
 * Refuses what `livingPeer` does, and REQUEST_INVALID what comes too often. Never JOURNAL_FULL for a low
 * disk: without its renewal a run that is there would end. How often one may ask bounds what that costs.
 */
export function decideRenew(
  command: Renew,
  state: State,
  { nowMs }: Surroundings,
): Outcome<Decision> {
  const { asker, issued } = command;
  const lifeMs = issued.notAfterMs - nowMs;
  const living = livingPeer(state.presence, asker, nowMs);
  const due = andThen(living, ({ lineage }) =>
    admitRenewal(state.world.renewals, lineage, { nowMs, lifeMs }),
  );
  return andThen(
    andThen(due, () => living),
    (peer) => {
      const { role, name, lineage } = peer;
      const receipt = { role, name, lineage, ...issued, issuedAtMs: nowMs };
      const notAfterMs = Math.max(peer.notAfterMs, issued.notAfterMs);
      return facts(withPeer(state.presence, { ...peer, notAfterMs }), [
        { kind: 'certificate-renewed', ...receipt },
      ]);
    },
  );
}

/** Whether an operator may have the identity of an actor. Refuses ACTOR_WITHOUT_WORKER. */
export function admitActor(world: World, operator: string, actor: string): Outcome<undefined> {
  for (const worker of world.workers.values()) {
    if (worker.openedBy === operator && worker.actor === actor) {
      return granted(undefined);
    }
  }
  return refused('ACTOR_WITHOUT_WORKER', { actor });
}

/** Refuses CONTROL_CHANNEL_NOT_BOUND, ACTOR_WITHOUT_WORKER, JOURNAL_FULL. */
export function decideIssueIdentity(
  command: IssueIdentity,
  state: State,
  surroundings: Surroundings,
): Outcome<Decision> {
  const { asker, actor } = command;
  const bound = livingPeer(state.presence, asker, surroundings.nowMs);
  const owned = andThen(bound, () => admitActor(state.world, asker.name, actor));
  return andThen(owned, () =>
    receipt(state, surroundings, {
      kind: 'agent-certificate-issued',
      actor,
      purpose: 'identity',
      ...command.issued,
    }),
  );
}

/** An actor's identity is enough; no Bind is needed. Refuses JOURNAL_FULL. */
export function decideIssueRunCertificate(
  command: IssueRunCertificate,
  state: State,
  surroundings: Surroundings,
): Outcome<Decision> {
  return receipt(state, surroundings, {
    kind: 'agent-certificate-issued',
    actor: command.asker.name,
    purpose: 'run',
    ...command.issued,
  });
}

function receipt(state: State, surroundings: Surroundings, event: WorldEvent): Outcome<Decision> {
  return andThen(admitGrowth(surroundings), () => facts(state.presence, [event]));
}
