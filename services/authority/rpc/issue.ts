/** Signs a certificate request and names the result by its fingerprint, before anyone is given it. */
import { X509Certificate } from 'node:crypto';
import { identify } from '#chassis/caller.js';
import type { Subject } from '#chassis/certificates.js';
import type { IssuedCertificate } from '#gen/wheelhouse/authority/v1/authority.js';
import { bug } from '#kernel/bug.js';
import { granted, type Outcome } from '#kernel/outcome.js';
import type { Issued } from '../domain/command.js';
import type { Room } from './room.js';

/** A signed certificate, to be recorded before it is handed out. */
export interface Signed {
  readonly issued: Issued;
  readonly message: IssuedCertificate;
}

/** Refuses CERTIFICATE_REQUEST_INVALID. The request's own subject is ignored. */
export async function sign(
  { certificates, clock }: Room,
  request: Uint8Array,
  subject: Omit<Subject, 'notAfterMs'> & { readonly lifeMs: number },
): Promise<Outcome<Signed>> {
  const nowMs = clock.now();
  const { role, name, lifeMs } = subject;
  const pem = await certificates.answer(request, { role, name, notAfterMs: nowMs + lifeMs }, nowMs);
  return pem.kind === 'refused' ? pem : granted(describe(pem.value));
}

function describe(certificatePem: string): Signed {
  const identity = identify(new X509Certificate(certificatePem).raw);
  if (identity.kind === 'refused') {
    return bug('a certificate of our own names nobody');
  }
  const { fingerprint, notAfterMs } = identity.value;
  return {
    issued: { fingerprint, notAfterMs },
    message: { certificatePem, notAfterMs: BigInt(notAfterMs) },
  };
}
