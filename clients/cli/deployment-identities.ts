/** The development root and the identities that a deployment on one machine starts with. */
import type { CertificateAuthority, KeyedCertificate } from '#chassis/certificates.js';
import { isNearItsEnd } from '#client/bind-stream.js';
import { operatorName, type RoleName, type StateFolder } from './state-folder.js';

const DAY_MS = 86_400_000;
/** Services are restarted more often than that, and each start renews what nears its end. */
const SERVICE_LIFE_MS = 365 * DAY_MS;
/** A person comes by within that; every use in the last third renews it. */
const OPERATOR_LIFE_MS = 90 * DAY_MS;

/** The one node of a deployment on one machine. */
export const LOCAL_NODE = 'local';

/**
 * Makes what is missing and renews what nears its end. Returns whether the root is new.
 * Keys of people and services are made here because this is where their owner is.
 */
export async function ensureIdentities(state: StateFolder, nowMs: number): Promise<boolean> {
  state.make();
  // Takes 0.1 s to load, and few commands come here.
  const { CertificateAuthority: Authority, mintAuthority } = await import(
    '#chassis/certificates.js'
  );
  const known = state.root();
  const root = known ?? (await mintAuthority(nowMs));
  if (known === undefined) {
    state.writeRoot(root);
  }
  const authority = await Authority.load(root);
  const operator = operatorName();
  const wanted: readonly RoleName[] = [
    { role: 'service', name: 'authority' },
    { role: 'service', name: `data.${LOCAL_NODE}` },
    { role: 'service', name: 'control' },
    { role: 'service', name: 'provenance' },
    { role: 'human-control', name: operator },
    { role: 'creator', name: operator },
  ];
  for (const roleName of wanted) {
    const current = state.identity(roleName);
    if (current === undefined || isNearItsEnd(current.identity.certificatePem, nowMs)) {
      state.writeIdentity(roleName, await mintIdentity(authority, roleName, nowMs));
    }
  }
  return known === undefined;
}

/** Mints one identity with the folder's root. Undefined when the folder has none. */
export async function mintFromRoot(
  state: StateFolder,
  roleName: RoleName,
  nowMs: number,
): Promise<KeyedCertificate | undefined> {
  const root = state.root();
  if (root === undefined) {
    return undefined;
  }
  const { CertificateAuthority: Authority } = await import('#chassis/certificates.js');
  return await mintIdentity(await Authority.load(root), roleName, nowMs);
}

async function mintIdentity(
  authority: CertificateAuthority,
  { role, name }: RoleName,
  nowMs: number,
): Promise<KeyedCertificate> {
  const lifeMs = role === 'service' ? SERVICE_LIFE_MS : OPERATOR_LIFE_MS;
  const notAfterMs = nowMs + lifeMs;
  const dot = role === 'service' ? name.indexOf('.') : -1;
  return await authority.mint(
    dot === -1
      ? { role, name, notAfterMs }
      : { role, name: name.slice(0, dot), node: name.slice(dot + 1), notAfterMs },
    nowMs,
  );
}
