/** The development root and the identities that a deployment on one machine starts with. */
import type { CertificateAuthority, KeyedCertificate } from '#chassis/certificates.js';
import { isNearItsEnd } from '#client/bind-stream.js';
import { RefusedError } from '#client/call-errors.js';
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
  const isNew = state.root() === undefined;
  const authority = await ensureRoot(state, nowMs);
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
    await ensureIdentity(authority, state, roleName, nowMs);
  }
  return isNew;
}

/**
 * Who signs for the folder's root, which is made when there is none and never replaced. Refuses
 * CALLER_UNIDENTIFIED where its key is kept elsewhere: a second root would shut out everybody.
 */
export async function ensureRoot(state: StateFolder, nowMs: number): Promise<CertificateAuthority> {
  // Takes 0.1 s to load, and few commands come here.
  const { CertificateAuthority: Authority, mintAuthority } = await import(
    '#chassis/certificates.js'
  );
  const known = state.root();
  if (known === undefined && state.rootCertificate() !== undefined) {
    throw new RefusedError({
      reason: 'CALLER_UNIDENTIFIED',
      facts: {
        found: `the root of ${state.dir} without its key`,
        next: 'the services of this folder are run where that key is; status shows whether they answer',
      },
    });
  }
  const root = known ?? (await mintAuthority(nowMs));
  if (known === undefined) {
    state.writeRoot(root);
  }
  return await Authority.load(root);
}

/** Makes the identity when it is missing or nears its end. Returns whether it did. */
export async function ensureIdentity(
  authority: CertificateAuthority,
  state: StateFolder,
  roleName: RoleName,
  nowMs: number,
): Promise<boolean> {
  const current = state.identity(roleName);
  if (current !== undefined && !isNearItsEnd(current.identity.certificatePem, nowMs)) {
    return false;
  }
  state.writeIdentity(roleName, await mintIdentity(authority, roleName, nowMs));
  return true;
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

/** On a key made here. */
export async function mintIdentity(
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
