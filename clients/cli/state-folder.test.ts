import { mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { homedir, tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { identify } from '#chassis/caller.js';
import { workspaceOf } from './commands/worker-open.js';
import { ensureIdentities, mintFromRoot } from './deployment-identities.js';
import { tryLock } from './folder-lock.js';
import { operatorOf } from './operator.js';
import {
  operatorName,
  parseRoleName,
  type RoleName,
  StateFolder,
  stateDirOf,
} from './state-folder.js';

let dir: string;
let state: StateFolder;

beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'wheelhouse-state-'));
  state = new StateFolder(join(dir, 'state'));
});
afterEach(() => rmSync(dir, { recursive: true }));

test('the folder is the one named, else the environment’s, else the system’s', () => {
  expect(stateDirOf('/a', { WHEELHOUSE_STATE: '/b' })).toBe('/a');
  expect(stateDirOf(undefined, { WHEELHOUSE_STATE: '/b', XDG_STATE_HOME: '/c' })).toBe('/b');
  expect(stateDirOf(undefined, { XDG_STATE_HOME: '/c' })).toBe('/c/wheelhouse');
  expect(stateDirOf(undefined, {})).toBe(join(homedir(), '.local/state/wheelhouse'));
});

test.each([
  ['ada', 'ada'],
  ['Ada Lovelace', 'ada-lovelace'],
  ['_svc', 'svc'],
  ['ÄÖ', 'operator'],
  ['', 'operator'],
])('user %s is operator %s', (user, operator) => {
  expect(operatorName(user)).toBe(operator);
});

test('an identity is a known role and a name', () => {
  expect(parseRoleName('agent/demo')).toEqual({ role: 'agent', name: 'demo' });
  expect(parseRoleName('service/data.local')).toEqual({ role: 'service', name: 'data.local' });
  for (const text of ['demo', 'agent/', 'agent/../x', 'root/demo', 'agent/a/b']) {
    expect(parseRoleName(text)).toBeUndefined();
  }
});

test('the first start makes the root and its identities, for their owner alone', async () => {
  expect(await ensureIdentities(state, Date.now())).toBe(true);
  expect(statSync(state.dir).mode & 0o777).toBe(0o700);
  const names = state.identities().map(({ role, name }) => `${role}/${name}`);
  expect(names).toEqual([
    `human-control/${operatorName()}`,
    `creator/${operatorName()}`,
    'service/authority',
    'service/control',
    'service/data.local',
    'service/provenance',
  ]);
  expect(statSync(state.path('ca', 'root.key')).mode & 0o777).toBe(0o600);
  expect(statSync(state.path('identities', 'service', 'authority.key')).mode & 0o777).toBe(0o600);
});

test('a second start keeps them, and renews what nears its end', async () => {
  const now = Date.now();
  await ensureIdentities(state, now);
  const service = { role: 'service', name: 'authority' } as const;
  const first = state.identity(service)?.identity.certificatePem;
  expect(await ensureIdentities(state, now)).toBe(false);
  expect(state.identity(service)?.identity.certificatePem).toBe(first);
  await ensureIdentities(state, now + 300 * 86_400_000);
  expect(state.identity(service)?.identity.certificatePem).not.toBe(first);
});

test('a data node’s identity names the node', async () => {
  await ensureIdentities(state, Date.now());
  const minted = await mintFromRoot(state, { role: 'service', name: 'data.n2' }, Date.now());
  expect(identify(Buffer.from(minted?.certificatePem ?? ''))).toMatchObject({
    value: { role: 'service', name: 'data', node: 'n2' },
  });
});

test('what is not there, or not ours, reads as nothing noted', () => {
  state.make();
  expect(state.endpoints()).toBeUndefined();
  writeFileSync(state.path('endpoints.json'), '{"authority":');
  expect(state.endpoints()).toBeUndefined();
  expect(state.actorOf('demo')).toBe('demo');
  state.noteActor('demo', 'claude');
  expect(state.actorOf('demo')).toBe('claude');
  expect(state.actorOf('../demo')).toBe('../demo');
  expect(state.workersNoted()).toEqual(['demo']);
});

test('one holds the folder at a time', () => {
  state.make();
  const path = state.path('up.lock');
  const held = tryLock(path);
  expect(held).toBeDefined();
  expect(tryLock(path)).toBeUndefined();
  held?.[Symbol.dispose]();
  const again = tryLock(path);
  expect(again).toBeDefined();
  again?.[Symbol.dispose]();
});

test('a folder that cannot be used is told with why', () => {
  expect(state.problem()).toBeUndefined();
  state.make();
  expect(state.problem()).toBeUndefined();
  const file = join(dir, 'file');
  writeFileSync(file, '');
  for (const path of [file, join(file, 'state')]) {
    expect(new StateFolder(path).problem()).toBe(`${file} is not a folder`);
  }
});

test('a root whose key is kept elsewhere is never replaced', async () => {
  await ensureIdentities(state, Date.now());
  const certificate = state.rootCertificate();
  rmSync(state.path('ca', 'root.key'));
  await expect(ensureIdentities(state, Date.now())).rejects.toMatchObject({
    refusal: { reason: 'CALLER_UNIDENTIFIED' },
  });
  expect(state.rootCertificate()).toBe(certificate);
});

test('the operator is the current user, or the only one there is', async () => {
  const keyed = { certificatePem: '', keyPem: '' };
  const own: RoleName = { role: 'human-control', name: operatorName() };
  expect(operatorOf({ as: undefined, state })).toEqual(own);

  const only: RoleName = { role: 'human-control', name: 'somebody-else' };
  await ensureIdentities(state, Date.now());
  state.writeIdentity(only, keyed);
  expect(operatorOf({ as: undefined, state })).toEqual(own);
  state.forgetIdentity(own);
  expect(operatorOf({ as: undefined, state })).toEqual(only);
  expect(operatorOf({ as: own, state })).toEqual(own);

  state.writeIdentity({ role: 'human-control', name: 'a-third' }, keyed);
  expect(operatorOf({ as: undefined, state })).toEqual(own);
});

test('a deployment’s workspace is where its workers are, and what a relative one is below', () => {
  const elsewhere = { authority: 'a:1', data: {}, workspace: '/workspace' };
  state.writeEndpoints(elsewhere);
  expect(state.endpoints()).toEqual(elsewhere);
  expect(workspaceOf(elsewhere)).toBe('/workspace');
  expect(workspaceOf(elsewhere, 'project')).toBe('/workspace/project');
  expect(workspaceOf(elsewhere, '/srv/project')).toBe('/srv/project');
  expect(workspaceOf({ authority: 'a:1', data: {} })).toBe(process.cwd());
});
