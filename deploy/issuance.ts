/** Gives every holder of a deployment its identities: makes, renews and replaces them. */
import { rmSync } from 'node:fs';
import { type BusKey, busSeedPath, ensureBusSeed, writeBusUsers } from '#chassis/bus-keys.js';
import { CertificateAuthority, mintAuthority } from '#chassis/certificates.js';
import { ensureIdentity, ensureRoot, mintIdentity } from '../clients/cli/deployment-identities.js';
import type { Endpoints, RoleName } from '../clients/cli/state-folder.js';
import { type Holder, type Holders, handOver, linkedFolder } from './holders.js';

/** The folders contradict one another, or were tampered with: a person must look. */
export class HoldersFault extends Error {
  override readonly name = 'HoldersFault';
}

/** What was done, one line each, for the job's log. */
export type Report = (line: string) => void;

/**
 * Makes what is missing and renews what nears its end. Run again it changes nothing. Throws a
 * `HoldersFault` where a holder has the root of another deployment: it never replaces one.
 */
export async function ensureAll(
  holders: Holders,
  endpoints: Endpoints,
  nowMs: number,
  report: Report,
): Promise<void> {
  checkLinks(holders);
  checkRoots(holders);
  holders.authority.state.make();
  const authority = await ensureRoot(holders.authority.state, nowMs);
  for (const holder of all(holders)) {
    await provide(holder, authority, nowMs, report);
  }
  admitToBus(holders);
  holders.operator.state.writeEndpoints(endpoints);
  handOver(holders.operator);
}

/** Makes the keys that are missing, and the broker's list of them all. */
function admitToBus(holders: Holders): void {
  const keys: BusKey[] = [];
  for (const holder of all(holders)) {
    const { bus, state } = holder;
    if (bus !== undefined) {
      keys.push({ service: bus, publicKey: ensureBusSeed(busSeedPath(state.dir, bus)) });
      handOver(holder);
    }
  }
  writeBusUsers(holders.busUsersFile, keys);
}

async function provide(
  holder: Holder,
  authority: CertificateAuthority,
  nowMs: number,
  report: Report,
): Promise<void> {
  const { what, state, identities } = holder;
  state.make();
  if (state.rootCertificate() === undefined) {
    state.writeRootCertificate(authority.certificatePem);
  }
  for (const roleName of identities) {
    const isMade = await ensureIdentity(authority, state, roleName, nowMs);
    report(`${isMade ? 'made' : 'kept'} ${wordsOf(roleName)} in ${what}`);
  }
  handOver(holder);
}

/** Makes an identity of one more person in the operator's folder. */
export async function issue(
  holders: Holders,
  roleName: RoleName,
  nowMs: number,
  report: Report,
): Promise<void> {
  checkLinks(holders);
  checkRoots(holders);
  if (roleName.role !== 'human-control' && roleName.role !== 'creator') {
    throw new HoldersFault(
      `this job issues human-control/NAME and creator/NAME; an agent’s identity comes from authority: wheelhouse identity issue ${wordsOf(roleName)}`,
    );
  }
  await replace(holders.operator, [roleName], await knownRoot(holders, nowMs), nowMs, report);
}

/**
 * Replaces the identities of the services and the operator, and the keys on the bus. Agents renew theirs.
 * In force for a service, and for the broker, when it is started again.
 */
export async function renew(holders: Holders, nowMs: number, report: Report): Promise<void> {
  checkLinks(holders);
  checkRoots(holders);
  const authority = await knownRoot(holders, nowMs);
  for (const holder of all(holders)) {
    await replace(holder, holder.identities, authority, nowMs, report);
    const { bus, state, what } = holder;
    if (bus !== undefined) {
      rmSync(busSeedPath(state.dir, bus), { force: true });
      report(`made the key of ${bus} on the bus in ${what}`);
    }
  }
  admitToBus(holders);
}

/**
 * Replaces the root and everything it has signed. Agents' identities are forgotten: opening a worker,
 * or `wheelhouse identity issue`, obtains new ones. Broken off, it is run again.
 */
export async function replaceRoot(
  holders: Holders,
  endpoints: Endpoints,
  nowMs: number,
  report: Report,
): Promise<void> {
  checkLinks(holders);
  const root = await mintAuthority(nowMs);
  const authority = await CertificateAuthority.load(root);
  holders.authority.state.make();
  holders.authority.state.writeRoot(root);
  for (const holder of all(holders)) {
    const { state, what } = holder;
    const before = state.identities();
    state.make();
    state.writeRootCertificate(root.certificatePem);
    for (const roleName of before.filter(({ role }) => role === 'agent')) {
      state.forgetIdentity(roleName);
      report(`forgot ${wordsOf(roleName)} in ${what}`);
    }
    const people = before.filter(({ role }) => role === 'human-control' || role === 'creator');
    await replace(holder, union(holder.identities, people), authority, nowMs, report);
  }
  admitToBus(holders);
  holders.operator.state.writeEndpoints(endpoints);
  handOver(holders.operator);
}

async function replace(
  holder: Holder,
  identities: readonly RoleName[],
  authority: CertificateAuthority,
  nowMs: number,
  report: Report,
): Promise<void> {
  for (const roleName of identities) {
    holder.state.writeIdentity(roleName, await mintIdentity(authority, roleName, nowMs));
    report(`made ${wordsOf(roleName)} in ${holder.what}`);
  }
  handOver(holder);
}

async function knownRoot({ authority }: Holders, nowMs: number): Promise<CertificateAuthority> {
  if (authority.state.root() === undefined) {
    throw new HoldersFault('there is no root yet: bring the deployment up first');
  }
  return await ensureRoot(authority.state, nowMs);
}

function checkRoots(holders: Holders): void {
  const root = holders.authority.state.rootCertificate();
  for (const { what, state } of all(holders)) {
    const held = state.rootCertificate();
    if (held !== undefined && held !== root) {
      throw new HoldersFault(
        `${what} holds the root of another deployment than the volume of authority; restore that volume, or replace everything with: identities new-root`,
      );
    }
  }
}

function checkLinks(holders: Holders): void {
  for (const holder of all(holders)) {
    const link = linkedFolder(holder);
    if (link !== undefined) {
      throw new HoldersFault(`${holder.what} has a link where a folder should be: ${link}`);
    }
  }
}

function all({ authority, data, operator }: Holders): readonly Holder[] {
  return [authority, data, operator];
}

function union(one: readonly RoleName[], other: readonly RoleName[]): readonly RoleName[] {
  const known = new Set(one.map(wordsOf));
  return [...one, ...other.filter((roleName) => !known.has(wordsOf(roleName)))];
}

function wordsOf({ role, name }: RoleName): string {
  return `${role}/${name}`;
}
