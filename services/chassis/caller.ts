/**
 * Who is calling: read from the connection's certificate and from nowhere else.
 *
 * Identity is one URI SAN: `spiffe://wheelhouse/<role>/<name>[/<node>]` (docs/architecture.md).
 */
import { X509Certificate } from 'node:crypto';
import { granted, type Outcome, refused } from '#kernel/outcome.js';

export type CallerRole = 'human-control' | 'agent' | 'creator' | 'service';

export interface CallerIdentity {
  readonly role: CallerRole;
  /** The operator, the actor, the creator, or the plane. */
  readonly name: string;
  /** A data service's node; undefined for everyone else. */
  readonly node: string | undefined;
  /** SHA-256 of the certificate, lower-case hex. */
  readonly fingerprint: string;
  /** End of the certificate, milliseconds since 1970. */
  readonly notAfterMs: number;
  /** The certificate as presented, DER. */
  readonly certificate: Uint8Array;
}

const TRUST_DOMAIN = 'spiffe://wheelhouse/';
const NAME = /^[a-z0-9][a-z0-9._-]{0,62}$/;

/** The form of every name that may stand in an identity. */
export function isName(value: string): boolean {
  return NAME.test(value);
}

/** The URI SAN of an identity. */
export function uriOf(role: CallerRole, name: string, node?: string): string {
  return `${TRUST_DOMAIN}${role}/${name}${node === undefined ? '' : `/${node}`}`;
}

/**
 * What certificates say, by their bytes: reading one takes 0.3 ms, and every call reads its caller's.
 *
 * No decision is kept here: the same bytes always say the same, and ends and lives are looked at anew.
 * Bounded, oldest first: as many as connect to one service at a time, several times over.
 */
const known = new Map<string, Outcome<CallerIdentity>>();
const KNOWN_MAX = 4096;

/** Reads the identity out of a certificate. Refuses CALLER_UNIDENTIFIED. Does not check its signature or end. */
export function identify(certificate: Uint8Array): Outcome<CallerIdentity> {
  const key = Buffer.from(certificate).toString('latin1');
  const before = known.get(key);
  if (before !== undefined) {
    return before;
  }
  const [oldest] = known.size < KNOWN_MAX ? [] : known.keys();
  if (oldest !== undefined) {
    known.delete(oldest);
  }
  const identity = read(certificate);
  known.set(key, identity);
  return identity;
}

function read(certificate: Uint8Array): Outcome<CallerIdentity> {
  const parsed = parseCertificate(certificate);
  if (parsed === undefined) {
    return refused('CALLER_UNIDENTIFIED', { found: 'no readable certificate' });
  }
  const identity = parseUri(parsed.subjectAltName ?? '');
  if (identity === undefined) {
    return refused('CALLER_UNIDENTIFIED', {
      found: (parsed.subjectAltName ?? 'nothing').slice(0, 200),
    });
  }
  return granted({
    ...identity,
    fingerprint: parsed.fingerprint256.replaceAll(':', '').toLowerCase(),
    notAfterMs: Date.parse(parsed.validTo),
    certificate,
  });
}

function parseCertificate(certificate: Uint8Array): X509Certificate | undefined {
  try {
    return new X509Certificate(certificate);
  } catch {
    return undefined;
  }
}

function parseUri(
  subjectAltName: string,
): Pick<CallerIdentity, 'role' | 'name' | 'node'> | undefined {
  const uris = subjectAltName.split(', ').filter((entry) => entry.startsWith('URI:'));
  const uri = uris.length === 1 ? uris[0]?.slice('URI:'.length) : undefined;
  if (uri === undefined || !uri.startsWith(TRUST_DOMAIN)) {
    return undefined;
  }
  const [role, name, node, ...rest] = uri.slice(TRUST_DOMAIN.length).split('/');
  if (name === undefined || !isName(name) || rest.length > 0) {
    return undefined;
  }
  if (role === 'service') {
    return node === undefined || isName(node) ? { role, name, node } : undefined;
  }
  const isKnown = role === 'human-control' || role === 'agent' || role === 'creator';
  return isKnown && node === undefined ? { role, name, node } : undefined;
}
