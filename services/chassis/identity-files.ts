/** Where a process finds its own certificate, its key and the deployment's root. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { KeyedCertificate } from './certificates.js';

/** A loaded identity, with the root it is to be checked against. */
export interface LoadedIdentity {
  readonly identity: KeyedCertificate;
  readonly rootPem: string;
}

/** Paths of one identity inside a state folder: `identities/<role>/<name>[.<node>].{crt,key}`. */
export function identityPaths(
  stateDir: string,
  role: string,
  name: string,
): { certificate: string; key: string } {
  const stem = join(stateDir, 'identities', role, name);
  return { certificate: `${stem}.crt`, key: `${stem}.key` };
}

/** The root's certificate and key inside a state folder. */
export function rootPaths(stateDir: string): { certificate: string; key: string } {
  return { certificate: join(stateDir, 'ca', 'root.crt'), key: join(stateDir, 'ca', 'root.key') };
}

/** Reads an identity. Throws when a file is missing. A data service's name is `data.<node>`. */
export function readIdentity(stateDir: string, role: string, name: string): LoadedIdentity {
  const paths = identityPaths(stateDir, role, name);
  return {
    identity: {
      certificatePem: readFileSync(paths.certificate, 'utf8'),
      keyPem: readFileSync(paths.key, 'utf8'),
    },
    rootPem: readFileSync(rootPaths(stateDir).certificate, 'utf8'),
  };
}
