/** IssueRunCertificate: a certificate of its own for one run of the caller's actor. */
import type { Handle } from '#chassis/unary.js';
import type {
  IssueRunCertificateRequest,
  IssueRunCertificateResponse,
} from '#gen/wheelhouse/authority/v1/authority.js';
import { andThen, granted } from '#kernel/outcome.js';
import { sign } from './issue.js';
import { askerOf, type Room } from './room.js';

export function issueRunCertificate(
  room: Room,
): Handle<IssueRunCertificateRequest, IssueRunCertificateResponse> {
  return async ({ certificateRequest }, caller) => {
    const asker = askerOf(room, caller);
    const subject = {
      role: 'agent',
      name: caller.name,
      lifeMs: room.settings.runCertificateLifeMs,
    } as const;
    const signed = await sign(room, certificateRequest, subject);
    if (signed.kind === 'refused') {
      return signed;
    }
    const { issued, message } = signed.value;
    const recorded = await room.authority.ask({ kind: 'issue-run-certificate', asker, issued });
    return andThen(recorded, () => granted({ certificate: message }));
  };
}
