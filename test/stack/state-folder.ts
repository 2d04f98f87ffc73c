/** Mints the identities of a deployment into a state folder, as `wheelhouse up` does on first start. */
import { chmodSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import type { CallerRole } from '#chassis/caller.js';
import {
  CertificateAuthority,
  type KeyedCertificate,
  mintAuthority,
} from '#chassis/certificates.js';
import {
  identityPaths,
  type LoadedIdentity,
  readIdentity,
  rootPaths,
} from '#chassis/identity-files.js';
import { operatorName } from '../../clients/cli/state-folder.js';

const LIFE_MS = 30 * 86_400_000;

/** Makes the root, the services' identities and the current user's as operator. The folder is made, for its owner alone. */
export async function mintStateFolder(stateDir: string, node: string): Promise<void> {
  mkdirSync(stateDir, { recursive: true, mode: 0o700 });
  chmodSync(stateDir, 0o700);
  write(rootPaths(stateDir), await mintAuthority(Date.now()));
  await mintIdentity(stateDir, 'service', 'authority');
  await mintIdentity(stateDir, 'service', 'data', { node });
  await mintIdentity(stateDir, 'human-control', operatorName());
}

/** Reads an identity of the folder; mints it when it is not there. */
export async function ensureIdentity(
  stateDir: string,
  role: CallerRole,
  name: string,
): Promise<LoadedIdentity> {
  if (!existsSync(identityPaths(stateDir, role, name).certificate)) {
    await mintIdentity(stateDir, role, name);
  }
  return readIdentity(stateDir, role, name);
}

/** Mints without asking authority: the tests hold the root's key. */
export async function mintIdentity(
  stateDir: string,
  role: CallerRole,
  name: string,
  options: { readonly node?: string; readonly notAfterMs?: number } = {},
): Promise<LoadedIdentity> {
  const root = rootPaths(stateDir);
  const authority = await CertificateAuthority.load({
    certificatePem: readFileSync(root.certificate, 'utf8'),
    keyPem: readFileSync(root.key, 'utf8'),
  });
  const { node, notAfterMs = Date.now() + LIFE_MS } = options;
  const subject = { role, name, notAfterMs, ...(node === undefined ? {} : { node }) };
  const fileName = node === undefined ? name : `${name}.${node}`;
  write(identityPaths(stateDir, role, fileName), await authority.mint(subject, Date.now()));
  return readIdentity(stateDir, role, fileName);
}

/** An identity that looks right but comes from another root. */
export async function mintStranger(
  stateDir: string,
  role: CallerRole,
  name: string,
): Promise<LoadedIdentity> {
  const stranger = await CertificateAuthority.load(await mintAuthority(Date.now()));
  const identity = await stranger.mint(
    { role, name, notAfterMs: Date.now() + LIFE_MS },
    Date.now(),
  );
  return { identity, rootPem: readFileSync(rootPaths(stateDir).certificate, 'utf8') };
}

function write(
  paths: { readonly certificate: string; readonly key: string },
  keyed: KeyedCertificate,
): void {
  mkdirSync(dirname(paths.certificate), { recursive: true, mode: 0o700 });
  writeFileSync(paths.certificate, keyed.certificatePem, { mode: 0o600 });
  writeFileSync(paths.key, keyed.keyPem, { mode: 0o600 });
}
