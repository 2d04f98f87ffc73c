/** Who holds which of a deployment's secrets: one folder each, in it nothing its holder does not need. */
import { chownSync, lchownSync, lstatSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { busUsersPath } from '#chassis/bus-keys.js';
import type { BusService } from '#chassis/bus-users.js';
import { LOCAL_NODE } from '../clients/cli/deployment-identities.js';
import { type RoleName, StateFolder } from '../clients/cli/state-folder.js';

/** Numbers, as the image's accounts have them. */
export interface Owner {
  readonly uid: number;
  readonly gid: number;
}

export interface Holder {
  readonly what: string;
  readonly state: StateFolder;
  /** Of every file in it. */
  readonly owner: Owner;
  /** What it is and stays able to act as. */
  readonly identities: readonly RoleName[];
  /** Whose key it speaks on the bus with. Undefined: it says and hears nothing there. */
  readonly bus?: BusService;
}

export interface Holders {
  /** The one that has the root's key: it signs for agents. */
  readonly authority: Holder;
  readonly data: Holder;
  /** The operator's folder on the host. */
  readonly operator: Holder;
  /** The broker's list of users: public keys, which anybody may read. */
  readonly busUsersFile: string;
}

/** As the accounts of deploy/Dockerfile and the users of deploy/docker-compose.yml have them. */
const AUTHORITY: Owner = { uid: 10_000, gid: 10_000 };
/** Data is root without the right to pass over modes, so what it reads must be root's. */
const DATA: Owner = { uid: 0, gid: 0 };

/** The folders below one, as the identity job mounts them. */
export function holdersBelow(folder: string, operator: string): Holders {
  const at = (name: string): StateFolder => new StateFolder(join(folder, name));
  const state = at('state');
  return {
    authority: {
      what: 'the volume of authority',
      state: at('authority'),
      owner: AUTHORITY,
      identities: [{ role: 'service', name: 'authority' }],
      bus: 'authority',
    },
    data: {
      what: 'the volume of data',
      state: at('data'),
      owner: DATA,
      identities: [{ role: 'service', name: `data.${LOCAL_NODE}` }],
    },
    operator: {
      what: 'the state folder',
      state,
      owner: lstatSync(state.dir),
      identities: [
        { role: 'human-control', name: operator },
        { role: 'creator', name: operator },
      ],
    },
    busUsersFile: busUsersPath(folder),
  };
}

/** Gives a holder what lies in its folder. Follows no link: the folder's owner may have made it. */
export function handOver({ state, owner }: Pick<Holder, 'state' | 'owner'>): void {
  chownSync(state.dir, owner.uid, owner.gid);
  for (const entry of readdirSync(state.dir, { recursive: true, withFileTypes: true })) {
    const path = join(entry.parentPath, entry.name);
    const { uid, gid } = lstatSync(path);
    if (uid !== owner.uid || gid !== owner.gid) {
      lchownSync(path, owner.uid, owner.gid);
    }
  }
}

/** A folder within it that is a link leads where this job may write and its owner may not. */
export function linkedFolder({ state }: Holder): string | undefined {
  return ['ca', 'identities', ...['human-control', 'creator'].map((role) => `identities/${role}`)]
    .map((name) => state.path(name))
    .find((path) => lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink() === true);
}
