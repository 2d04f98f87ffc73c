/**
 * Who may say and hear what on the broker: one user a service, each with a key of its own.
 *
 * Deny by default. The table is whole, the planes that are still to come included, so that a new one
 * is a row here and never a wildcard. Rendered for a broker of any version from 2.9 on.
 */
import { type HintingPlane, hintSubject } from './bus-subjects.js';

export type BusService = 'authority' | 'control' | 'data' | 'provenance';

/** Subjects without wildcards. What is not listed is refused by the broker. */
export interface BusPermissions {
  readonly publish: readonly string[];
  readonly subscribe: readonly string[];
}

/** A user as the broker knows it. Several may be of one service: data nodes have a key each. */
export interface BusUser {
  /** The public half of its key, `U…`. */
  readonly publicKey: string;
  readonly permissions: BusPermissions;
}

/**
 * Data says and hears nothing yet: its Status will ride core subjects and gets its row then.
 * There is no request and reply on this bus, so nobody needs an inbox.
 */
export const busPermissions: Readonly<Record<BusService, BusPermissions>> = {
  authority: { publish: hints('authority'), subscribe: [] },
  control: { publish: [], subscribe: hints('authority', 'provenance') },
  data: { publish: [], subscribe: [] },
  provenance: { publish: hints('provenance'), subscribe: hints('authority') },
};

/** All services that have a user. */
export const busServices: readonly BusService[] = ['authority', 'control', 'data', 'provenance'];

function hints(...planes: readonly HintingPlane[]): readonly string[] {
  return planes.map(hintSubject);
}

/**
 * What no user may touch, whatever its row says: the broker's own interfaces, where a stream could be
 * made that retains what must not be retained (law P9).
 */
const NOBODYS = '["$JS.>", "$SYS.>"]';

/**
 * The `authorization` block that the broker's configuration includes.
 *
 * Throws for a subject that holds a wildcard or nothing, and for a key that is no user's public key:
 * a subject that can never match would be a permission that silently never works, and a seed in this
 * file would be a secret in the open.
 */
export function renderBusUsers(users: readonly BusUser[]): string {
  return `# Generated: who may say and hear what. Public keys only.
authorization {
  # How long a connection may take to sign its challenge, in seconds.
  timeout: 2
  # A user without a row of its own may do nothing.
  default_permissions = { publish: { deny: [">"] }, subscribe: { deny: [">"] } }
  users = [
${users.map(userBlock).join('\n')}
  ]
}
`;
}

function userBlock({ publicKey, permissions }: BusUser): string {
  if (!/^U[A-Z2-7]{55}$/.test(publicKey)) {
    throw new Error('a bus user is named by its public key, U and 55 characters');
  }
  return `    { nkey: ${publicKey}, permissions: {
        publish: ${rule(permissions.publish)}
        subscribe: ${rule(permissions.subscribe)}
    } }`;
}

/** NOTE: the broker reads an empty `allow` as no limit at all, so "nothing" has to be a deny. */
function rule(subjects: readonly string[]): string {
  return subjects.length === 0
    ? '{ deny: [">"] }'
    : `{ allow: [${subjects.map(allowed).join(', ')}], deny: ${NOBODYS} }`;
}

function allowed(subject: string): string {
  if (!/^[a-z]+(?:\.[a-z]+)+$/.test(subject)) {
    throw new Error(`a permission names one subject, and ${JSON.stringify(subject)} is none`);
  }
  return `"${subject}"`;
}
