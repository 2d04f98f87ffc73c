/** Checks certificates that come in messages rather than in handshakes: those a data node introduces. */
import { X509Certificate } from 'node:crypto';
import { type CallerIdentity, identify } from '#chassis/caller.js';
import { type Outcome, refused } from '#kernel/outcome.js';

/**
 * Names the holder of a certificate that the deployment's root has signed. Refuses CALLER_UNIDENTIFIED.
 *
 * The certificate's end is not looked at: a connection outlives its handshake, and what counts is its
 * peer's newest certificate (docs/architecture.md, identity).
 */
export function trusting(rootPem: string): (certificate: Uint8Array) => Outcome<CallerIdentity> {
  const root = new X509Certificate(rootPem);
  return (certificate) =>
    isSignedBy(root, certificate)
      ? identify(certificate)
      : refused('CALLER_UNIDENTIFIED', { found: 'a certificate of another root' });
}

function isSignedBy(root: X509Certificate, certificate: Uint8Array): boolean {
  try {
    const leaf = new X509Certificate(certificate);
    return leaf.checkIssued(root) && leaf.verify(root.publicKey);
  } catch {
    return false;
  }
}
