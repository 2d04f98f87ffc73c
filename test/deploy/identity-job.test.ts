/** The identity job on folders of this machine: what it makes, keeps, replaces and refuses. */
import { spawnSync } from 'node:child_process';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { busSeedPath } from '#chassis/bus-keys.js';
import { identify } from '#chassis/caller.js';
import { type RoleName, StateFolder } from '../../clients/cli/state-folder.js';
import { type Holder, type Holders, holdersBelow } from '../../deploy/holders.js';
import { ensureAll, issue, renew, replaceRoot } from '../../deploy/issuance.js';
import { root } from '../tidy/project.js';

const NOW = Date.parse('2026-11-30T12:00:00Z');
const DAY_MS = 86_400_000;
const endpoints = { authority: '127.0.0.1:1', data: { local: '127.0.0.1:2' } };

let folder: string;
let holders: Holders;
let said: string[];
const say = (line: string): void => void said.push(line);

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'wheelhouse-holders-'));
  mkdirSync(join(folder, 'state'));
  const { uid, gid } = statSync(folder);
  const mine = (holder: Holder): Holder => ({ ...holder, owner: { uid, gid } });
  const { authority, data, operator, busUsersFile } = holdersBelow(folder, 'captain');
  holders = {
    authority: mine(authority),
    data: mine(data),
    operator: mine(operator),
    busUsersFile,
  };
  said = [];
});
afterEach(() => rmSync(folder, { recursive: true }));

function namesIn({ state }: Holder): readonly string[] {
  return state.identities().map(({ role, name }) => `${role}/${name}`);
}

function fingerprint({ state }: Holder, roleName: RoleName): string {
  const found = identify(Buffer.from(pemBody(state.identity(roleName)?.identity.certificatePem)));
  return found.kind === 'granted' ? found.value.fingerprint : 'none';
}

function pemBody(pem = ''): Uint8Array {
  return Buffer.from(pem.replace(/-----[^-]+-----|\s/g, ''), 'base64');
}

const authoritys: RoleName = { role: 'service', name: 'authority' };
const captain: RoleName = { role: 'human-control', name: 'captain' };

test('each holder has what it needs, and authority alone the root’s key', async () => {
  await ensureAll(holders, endpoints, NOW, say);
  expect(namesIn(holders.authority)).toEqual(['service/authority']);
  expect(namesIn(holders.data)).toEqual(['service/data.local']);
  expect(namesIn(holders.operator)).toEqual(['human-control/captain', 'creator/captain']);
  const keys = [holders.authority, holders.data, holders.operator].map(({ state }) =>
    existsSync(state.path('ca', 'root.key')),
  );
  expect(keys).toEqual([true, false, false]);
  expect(holders.operator.state.endpoints()).toEqual(endpoints);
  const users = readFileSync(holders.busUsersFile, 'utf8');
  expect(users).toContain('wheelhouse.hint.authority');
  expect(users).not.toContain(
    readFileSync(busSeedPath(holders.authority.state.dir, 'authority'), 'utf8').trim(),
  );
});

test('run again it changes nothing, and renews what nears its end', async () => {
  await ensureAll(holders, endpoints, NOW, say);
  const before = [
    fingerprint(holders.authority, authoritys),
    fingerprint(holders.operator, captain),
  ];
  const rootBefore = holders.authority.state.root();
  const users = readFileSync(holders.busUsersFile, 'utf8');
  said = [];
  await ensureAll(holders, endpoints, NOW + DAY_MS, say);
  expect(said.every((line) => line.startsWith('kept '))).toBe(true);
  expect([
    fingerprint(holders.authority, authoritys),
    fingerprint(holders.operator, captain),
  ]).toEqual(before);
  // An operator's lasts 90 days, a service's 365.
  await ensureAll(holders, endpoints, NOW + 80 * DAY_MS, say);
  expect(fingerprint(holders.authority, authoritys)).toBe(before[0]);
  expect(fingerprint(holders.operator, captain)).not.toBe(before[1]);
  expect(holders.authority.state.root()).toEqual(rootBefore);
  expect(readFileSync(holders.busUsersFile, 'utf8')).toBe(users);
});

test('renewing replaces certificates and bus keys, and never the root', async () => {
  await ensureAll(holders, endpoints, NOW, say);
  const before = fingerprint(holders.authority, authoritys);
  const rootBefore = holders.authority.state.root();
  const users = readFileSync(holders.busUsersFile, 'utf8');
  await renew(holders, NOW, say);
  expect(fingerprint(holders.authority, authoritys)).not.toBe(before);
  expect(readFileSync(holders.busUsersFile, 'utf8')).not.toBe(users);
  expect(holders.authority.state.root()).toEqual(rootBefore);
});

test('one more person is issued an identity; an agent and a service are not', async () => {
  await expect(issue(holders, { role: 'creator', name: 'ada' }, NOW, say)).rejects.toThrow(
    'no root',
  );
  await ensureAll(holders, endpoints, NOW, say);
  await issue(holders, { role: 'human-control', name: 'ada' }, NOW, say);
  expect(namesIn(holders.operator)).toContain('human-control/ada');
  for (const role of ['agent', 'service'] as const) {
    await expect(issue(holders, { role, name: 'x' }, NOW, say)).rejects.toThrow('identity issue');
  }
});

test('a new root replaces everything that the old one signed, and agents are forgotten', async () => {
  await ensureAll(holders, endpoints, NOW, say);
  await issue(holders, { role: 'human-control', name: 'ada' }, NOW, say);
  const agent: RoleName = { role: 'agent', name: 'builder' };
  holders.operator.state.writeIdentity(agent, { certificatePem: 'c', keyPem: 'k' });
  const before = holders.authority.state.rootCertificate();
  await replaceRoot(holders, endpoints, NOW, say);
  const after = holders.authority.state.rootCertificate();
  expect(after).not.toBe(before);
  expect(holders.data.state.rootCertificate()).toBe(after);
  expect(holders.operator.state.rootCertificate()).toBe(after);
  expect(namesIn(holders.operator)).toEqual([
    'human-control/ada',
    'human-control/captain',
    'creator/captain',
  ]);
  await ensureAll(holders, endpoints, NOW, say);
});

test('a holder with the root of another deployment stops it: authority’s volume was lost', async () => {
  await ensureAll(holders, endpoints, NOW, say);
  const held = holders.data.state.rootCertificate();
  rmSync(holders.authority.state.dir, { recursive: true });
  await expect(ensureAll(holders, endpoints, NOW, say)).rejects.toThrow('new-root');
  expect(holders.authority.state.rootCertificate()).toBeUndefined();
  expect(holders.data.state.rootCertificate()).toBe(held);
  await replaceRoot(holders, endpoints, NOW, say);
  await ensureAll(holders, endpoints, NOW, say);
});

test('a link where a folder should be stops it: it may write where the folder’s owner may not', async () => {
  symlinkSync(join(folder, 'authority'), join(folder, 'state', 'identities'));
  await expect(ensureAll(holders, endpoints, NOW, say)).rejects.toThrow('a link');
  expect(new StateFolder(join(folder, 'authority')).exists).toBe(false);
});

test.each([
  [['nonsense'], 64, 'usage'],
  [['issue', 'ada'], 64, 'usage'],
  [['renew'], 78, 'no root'],
])('the words %j end it with %i', (words, code, text) => {
  const program = join(root, 'dist', 'deploy', 'identities.js');
  const env = { ...process.env, WHEELHOUSE_HOLDERS: folder };
  const { status, stderr } = spawnSync(process.execPath, [program, ...words], { env });
  expect([status, String(stderr)]).toEqual([code, expect.stringContaining(text)]);
});
