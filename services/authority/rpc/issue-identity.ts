/** IssueIdentity: the identity of an actor that a worker of the caller's names. */
import type { Handle } from '#chassis/unary.js';
import type {
  IssueIdentityRequest,
  IssueIdentityResponse,
} from '#gen/wheelhouse/authority/v1/authority.js';
import { andThen, granted } from '#kernel/outcome.js';
import { admitActor } from '../domain/certificates.js';
import { sign } from './issue.js';
import { askerOf, boundPeer, type Room } from './room.js';

/** Looked at before signing, so that no certificate exists that was not allowed, and again when it is recorded. */
export function issueIdentity(room: Room): Handle<IssueIdentityRequest, IssueIdentityResponse> {
  return async ({ actor, certificateRequest }, caller) => {
    const asker = askerOf(room, caller);
    const owned = andThen(boundPeer(room, caller), () =>
      admitActor(room.authority.state.world, caller.name, actor),
    );
    if (owned.kind === 'refused') {
      return owned;
    }
    const subject = {
      role: 'agent',
      name: actor,
      lifeMs: room.settings.actorIdentityLifeMs,
    } as const;
    const signed = await sign(room, certificateRequest, subject);
    if (signed.kind === 'refused') {
      return signed;
    }
    const { issued, message } = signed.value;
    const recorded = await room.authority.ask({ kind: 'issue-identity', asker, actor, issued });
    return andThen(recorded, () => granted({ certificate: message }));
  };
}
