/**
 * The state folder of one deployment on this machine: who may call, where the services are.
 *
 * It is for its owner alone (0700, files 0600). Every file is written beside itself and moved into
 * place, so that a reader never sees half of one.
 */
import {
  accessSync,
  chmodSync,
  constants,
  existsSync,
  lstatSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { homedir, userInfo } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { type CallerRole, isName } from '#chassis/caller.js';
import type { KeyedCertificate } from '#chassis/certificates.js';
import {
  identityPaths,
  type LoadedIdentity,
  readIdentity,
  rootPaths,
} from '#chassis/identity-files.js';
import { makeFolder } from '#chassis/make-folder.js';

/** An identity as people write it: `ROLE/NAME`; of a data service `service/data.NODE`. */
export interface RoleName {
  readonly role: CallerRole;
  readonly name: string;
}

export interface Endpoints {
  readonly authority: string;
  /** By node. */
  readonly data: Readonly<Record<string, string>>;
  /** Where workers are when nobody says, on the data nodes. Undefined: the caller's own folder, on one machine. */
  readonly workspace?: string;
}

/** The processes of the `up` that holds the folder. */
export interface UpRecord {
  readonly pid: number;
  readonly services: Readonly<Record<string, number>>;
}

export const ROLES: readonly CallerRole[] = ['human-control', 'agent', 'creator', 'service'];

/** `--state`, WHEELHOUSE_STATE, or where the system keeps such things. */
export function stateDirOf(
  given: string | undefined,
  env: Readonly<Record<string, string | undefined>>,
): string {
  const named = given ?? env['WHEELHOUSE_STATE'];
  if (named !== undefined && named !== '') {
    return resolve(named);
  }
  const base = env['XDG_STATE_HOME'];
  return base === undefined || base === ''
    ? join(homedir(), '.local', 'state', 'wheelhouse')
    : resolve(base, 'wheelhouse');
}

/** The current user as a name that an identity may carry. */
export function operatorName(username = accountName()): string {
  const name = username
    .toLowerCase()
    .replace(/[^a-z0-9._-]/g, '-')
    .replace(/^[^a-z0-9]+/, '')
    .slice(0, 63);
  return isName(name) ? name : 'operator';
}

/** Empty for a user who is only a number, as in a container. */
function accountName(): string {
  try {
    return userInfo().username;
  } catch {
    return '';
  }
}

/** Undefined unless the text is `ROLE/NAME`. */
export function parseRoleName(text: string): RoleName | undefined {
  const slash = text.indexOf('/');
  const role = ROLES.find((known) => known === text.slice(0, slash));
  const name = text.slice(slash + 1);
  return role !== undefined && isName(name) ? { role, name } : undefined;
}

export class StateFolder {
  readonly dir: string;

  constructor(dir: string) {
    this.dir = dir;
  }

  get exists(): boolean {
    return existsSync(rootPaths(this.dir).certificate);
  }

  /** Why the folder, or the one it would be made in, cannot be used; undefined when it can. */
  problem(): string | undefined {
    let nearest = this.dir;
    while (!isThere(nearest) && dirname(nearest) !== nearest) {
      nearest = dirname(nearest);
    }
    const isWhole = nearest === this.dir;
    try {
      if (!statSync(nearest).isDirectory()) {
        return `${nearest} is not a folder`;
      }
      accessSync(nearest, constants.R_OK | constants.W_OK | constants.X_OK);
      return undefined;
    } catch {
      const what = isWhole ? 'read and write' : `make ${this.dir} in`;
      return `you may not ${what} ${nearest}; mend its permissions, or name another folder with --state`;
    }
  }

  path(...names: readonly string[]): string {
    return join(this.dir, ...names);
  }

  /** Makes the folder, for its owner alone. */
  make(): void {
    makeFolder(this.dir);
    chmodSync(this.dir, 0o700);
  }

  makeFolder(path: string): void {
    makeFolder(path);
  }

  write(path: string, content: string): void {
    this.makeFolder(dirname(path));
    const fresh = `${path}.${process.pid}.new`;
    writeFileSync(fresh, content, { mode: 0o600 });
    renameSync(fresh, path);
  }

  /** Undefined when the folder has no such identity. */
  identity({ role, name }: RoleName): LoadedIdentity | undefined {
    const paths = identityPaths(this.dir, role, name);
    return existsSync(paths.certificate) && existsSync(paths.key)
      ? readIdentity(this.dir, role, name)
      : undefined;
  }

  /** The key goes first: a certificate without its key would be worth nothing. */
  writeIdentity({ role, name }: RoleName, { certificatePem, keyPem }: KeyedCertificate): void {
    const paths = identityPaths(this.dir, role, name);
    this.write(paths.key, keyPem);
    this.write(paths.certificate, certificatePem);
  }

  forgetIdentity({ role, name }: RoleName): void {
    const { certificate, key } = identityPaths(this.dir, role, name);
    rmSync(certificate, { force: true });
    rmSync(key, { force: true });
  }

  /** Every identity the folder holds. */
  identities(): readonly RoleName[] {
    return ROLES.flatMap((role) =>
      namesIn(this.path('identities', role), '.crt').map((name) => ({ role, name })),
    );
  }

  /** Undefined while the deployment has no root here. */
  root(): KeyedCertificate | undefined {
    const paths = rootPaths(this.dir);
    return existsSync(paths.certificate) && existsSync(paths.key)
      ? {
          certificatePem: readFileSync(paths.certificate, 'utf8'),
          keyPem: readFileSync(paths.key, 'utf8'),
        }
      : undefined;
  }

  /** The root's certificate alone, as one has it who may check and not sign. Undefined when there is none. */
  rootCertificate(): string | undefined {
    const { certificate } = rootPaths(this.dir);
    return existsSync(certificate) ? readFileSync(certificate, 'utf8') : undefined;
  }

  writeRoot({ certificatePem, keyPem }: KeyedCertificate): void {
    this.write(rootPaths(this.dir).key, keyPem);
    this.writeRootCertificate(certificatePem);
  }

  writeRootCertificate(certificatePem: string): void {
    this.write(rootPaths(this.dir).certificate, certificatePem);
  }

  /** Undefined when no service has been started from this folder. */
  endpoints(): Endpoints | undefined {
    const record = this.#read('endpoints.json');
    const { authority, data, workspace } = record;
    if (typeof authority !== 'string') {
      return undefined;
    }
    return {
      authority,
      data: typeof data === 'string' ? { local: data } : strings(data),
      ...(typeof workspace === 'string' ? { workspace } : {}),
    };
  }

  writeEndpoints(endpoints: Endpoints): void {
    this.write(this.path('endpoints.json'), `${JSON.stringify(endpoints)}\n`);
  }

  up(): UpRecord | undefined {
    const { pid, services } = this.#read('up.json');
    return typeof pid === 'number' ? { pid, services: numbers(services) } : undefined;
  }

  writeUp(record: UpRecord): void {
    this.write(this.path('up.json'), `${JSON.stringify(record)}\n`);
  }

  forgetUp(): void {
    rmSync(this.path('up.json'), { force: true });
  }

  /**
   * Whose identity `run` takes for a worker. A note for this machine alone: what it says is checked
   * by authority like anything else.
   */
  actorOf(worker: string): string {
    const { actor } = isName(worker) ? this.#read(join('workers', `${worker}.json`)) : {};
    return typeof actor === 'string' && isName(actor) ? actor : worker;
  }

  noteActor(worker: string, actor: string): void {
    this.write(this.path('workers', `${worker}.json`), `${JSON.stringify({ actor })}\n`);
  }

  /** Workers that were opened from this folder. */
  workersNoted(): readonly string[] {
    return namesIn(this.path('workers'), '.json');
  }

  #read(name: string): Record<string, unknown> {
    try {
      const value: unknown = JSON.parse(readFileSync(this.path(name), 'utf8'));
      return typeof value === 'object' && value !== null ? { ...value } : {};
    } catch {
      // Not there, or not ours: the same as nothing noted.
      return {};
    }
  }
}

/** A folder that may not be looked into may hold it or not: asking it fails, which is told as well. */
function isThere(path: string): boolean {
  try {
    lstatSync(path);
    return true;
  } catch {
    return false;
  }
}

function namesIn(folder: string, ending: string): readonly string[] {
  return existsSync(folder)
    ? readdirSync(folder)
        .filter((file) => file.endsWith(ending))
        .map((file) => file.slice(0, -ending.length))
        .sort()
    : [];
}

function strings(value: unknown): Record<string, string> {
  return Object.fromEntries(
    Object.entries(Object(value)).filter(
      (entry): entry is [string, string] => typeof entry[1] === 'string',
    ),
  );
}

function numbers(value: unknown): Record<string, number> {
  return Object.fromEntries(
    Object.entries(Object(value)).filter(
      (entry): entry is [string, number] => typeof entry[1] === 'number',
    ),
  );
}
