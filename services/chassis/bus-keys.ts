/**
 * Keys of the bus's users in files: a seed for each service, and the broker's list of who may what.
 *
 * A seed never leaves the service that signs with it; the broker has public keys only.
 */
import { chmodSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { nkeys } from 'nats';
import { type BusService, busPermissions, renderBusUsers } from './bus-users.js';
import { Fault } from './fault.js';
import { makeFolder } from './make-folder.js';

interface KeyPair {
  getPublicKey(): string;
  getSeed(): Uint8Array;
}

/** The broker's client hands these on without their types. */
const keys: { createUser(): KeyPair; fromSeed(seed: Uint8Array): KeyPair } = nkeys;

/** Where a service looks for its seed when no setting says otherwise. */
export function busSeedPath(stateDir: string, service: BusService): string {
  return join(stateDir, 'bus', `${service}.seed`);
}

/** Where the broker's list is written: a folder that may be shown to the broker, and nothing else in it. */
export function busUsersPath(stateDir: string): string {
  return join(stateDir, 'nats', 'users.conf');
}

/** Reads a seed as the client signs with it. Throws a `Fault` that names the file, never its content. */
export function readBusSeed(path: string): Uint8Array {
  const seed = new Uint8Array(Buffer.from(readFileSync(path, 'utf8').trim(), 'utf8'));
  publicKeyOf(seed, path);
  return seed;
}

/**
 * Makes the seed if there is none, for its owner alone (0600), and returns its public key.
 *
 * What is there is kept: whoever holds the key goes on. Throws a `Fault` for a file that is no seed.
 */
export function ensureBusSeed(path: string): string {
  makeFolder(dirname(path));
  const pair = keys.createUser();
  try {
    writeFileSync(path, `${Buffer.from(pair.getSeed()).toString('utf8')}\n`, {
      mode: 0o600,
      flag: 'wx',
    });
    return pair.getPublicKey();
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'EEXIST') {
      return publicKeyOf(readBusSeed(path), path);
    }
    throw error;
  }
}

/** One key on the broker's list: which service's permissions its holder gets. */
export interface BusKey {
  readonly service: BusService;
  readonly publicKey: string;
}

/**
 * Writes the broker's list of users, whole or not at all. Anybody who is shown the folder may read it:
 * it holds no secret, and the broker runs as somebody else.
 *
 * The broker reads it when it starts: a key that is new here needs a broker started after.
 */
export function writeBusUsers(path: string, users: readonly BusKey[]): void {
  makeFolder(dirname(path));
  chmodSync(dirname(path), 0o755);
  const text = renderBusUsers(
    users.map(({ service, publicKey }) => ({ publicKey, permissions: busPermissions[service] })),
  );
  const draft = `${path}.new`;
  writeFileSync(draft, text, { mode: 0o644 });
  renameSync(draft, path);
}

function publicKeyOf(seed: Uint8Array, path: string): string {
  try {
    return keys.fromSeed(seed).getPublicKey();
  } catch {
    // The cause would carry what was read.
    throw new Fault(`${path} holds no seed of a bus user`);
  }
}
