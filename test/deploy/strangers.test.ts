/** Between containers as between machines: who answers and who asks is what the certificate says. */
import { copyFileSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { identityPaths, rootPaths } from '#chassis/identity-files.js';
import { eventually } from '../stack/eventually.js';
import { hasTool, needs } from '../stack/machine.js';
import { mintIdentity, mintStateFolder } from '../stack/state-folder.js';
import { bringUp, type Deployment } from './deployment.js';
import { docker } from './engine-command.js';

let deployment: Deployment;
/** Identities of the deployment's own root, which a test may mint; and of a root of its own. */
let ours: string;
let theirs: string;

beforeAll(async () => {
  if (!hasTool('docker')) {
    return;
  }
  deployment = await bringUp();
  ours = mkdtempSync(join(tmpdir(), 'wheelhouse-ours-'));
  theirs = mkdtempSync(join(tmpdir(), 'wheelhouse-theirs-'));
  mkdirSync(join(ours, 'ca'));
  writeFileSync(rootPaths(ours).certificate, await heldBy('authority', 'ca/root.crt'));
  writeFileSync(rootPaths(ours).key, await heldBy('authority', 'ca/root.key'));
  await mintIdentity(ours, 'human-control', 'captain');
  await mintIdentity(ours, 'creator', 'captain');
  await mintIdentity(ours, 'agent', 'builder');
  await mintIdentity(ours, 'service', 'authority');
  await mintStateFolder(theirs, 'local');
  await mintIdentity(theirs, 'human-control', 'captain');
});
afterAll(async () => {
  await deployment?.[Symbol.asyncDispose]();
  for (const folder of [ours, theirs]) {
    rmSync(folder ?? '', { recursive: true, force: true });
  }
});
beforeEach((context) => needs(context, 'docker'));

async function heldBy(volume: string, path: string): Promise<string> {
  const mount = `${deployment.project}_${volume}:/held:ro`;
  const args = ['--rm', '--network', 'none', '--user', '0', '--volume', mount];
  return await docker('run', ...args, deployment.images.service, 'cat', `/held/${path}`);
}

/** Asks for the workers, or anything at all, and prints the status of the answer. */
const DIAL = `
const at = '/srv/wheelhouse/dist/';
const { clientCredentials, clientOptions } = await import(at + 'services/chassis/grpc-client.js');
const { readIdentity } = await import(at + 'services/chassis/identity-files.js');
const { Client } = await import('/srv/wheelhouse/node_modules/@grpc/grpc-js/build/src/index.js');
const [endpoint, plane, role, name, method] = process.argv.slice(1);
const { identity, rootPem } = readIdentity('/id', role, name);
const client = new Client(endpoint, clientCredentials(identity, rootPem, { plane }), clientOptions);
const raw = (bytes) => bytes;
client.makeUnaryRequest(method, raw, raw, Buffer.alloc(0), { deadline: Date.now() + 10000 }, (error) => {
  console.log(JSON.stringify({ code: error?.code ?? 0, details: error?.details ?? '' }));
  client.close();
});
`;
const LIST = '/wheelhouse.authority.v1.AuthorityService/ListWorkers';
const NO_METHOD = '/wheelhouse.data.v1.DataService/NoSuchMethod';
const OK = 0;
const PERMISSION_DENIED = 7;
const FAILED_PRECONDITION = 9;
const UNIMPLEMENTED = 12;
const UNAVAILABLE = 14;

interface Dialling {
  readonly folder: 'ours' | 'theirs';
  readonly as: readonly [role: string, name: string];
  readonly endpoint: string;
  readonly expecting: 'authority' | 'data';
}

async function dial({
  folder,
  as,
  endpoint,
  expecting,
}: Dialling): Promise<{ code: number; details: string }> {
  const mount = `${folder === 'ours' ? ours : theirs}:/id:ro`;
  const where = ['--network', `${deployment.project}_planes`, '--volume', mount, '--user', '0'];
  const node = ['node', '--input-type=module', '-e', DIAL, endpoint, expecting, ...as];
  const method = expecting === 'authority' ? LIST : NO_METHOD;
  return JSON.parse(
    await docker('run', '--rm', ...where, deployment.images.service, ...node, method),
  );
}

const captain = ['human-control', 'captain'] as const;

test.each([
  {
    who: 'an operator of this deployment',
    folder: 'ours',
    as: captain,
    endpoint: 'data:7412',
    expecting: 'data',
    code: UNIMPLEMENTED,
  },
  {
    who: 'an operator who is not present',
    folder: 'ours',
    as: captain,
    endpoint: 'authority:7411',
    expecting: 'authority',
    code: FAILED_PRECONDITION,
  },
  {
    who: 'a creator',
    folder: 'ours',
    as: ['creator', 'captain'],
    endpoint: 'authority:7411',
    expecting: 'authority',
    code: PERMISSION_DENIED,
  },
  {
    who: 'an agent that is not present',
    folder: 'ours',
    as: ['agent', 'builder'],
    endpoint: 'authority:7411',
    expecting: 'authority',
    code: FAILED_PRECONDITION,
  },
  {
    who: 'a service',
    folder: 'ours',
    as: ['service', 'authority'],
    endpoint: 'authority:7411',
    expecting: 'authority',
    code: PERMISSION_DENIED,
  },
] as const)('$who is let in and told status $code', async ({ code, ...dialling }) => {
  expect(await dial(dialling)).toMatchObject({ code });
});

test.each([
  { who: 'an operator', as: captain, endpoint: 'authority:7411', expecting: 'authority' },
  { who: 'an operator', as: captain, endpoint: 'data:7412', expecting: 'data' },
  {
    who: 'a data node',
    as: ['service', 'data.local'],
    endpoint: 'authority:7411',
    expecting: 'authority',
  },
] as const)('$who of another root gets no connection to $endpoint', async (dialling) => {
  expect(await dial({ folder: 'theirs', ...dialling })).toMatchObject({ code: UNAVAILABLE });
});

test.each([
  { endpoint: 'authority:7411', expecting: 'data' },
  { endpoint: 'data:7412', expecting: 'authority' },
] as const)('$endpoint is not taken for $expecting', async (dialling) => {
  const answer = await dial({ folder: 'ours', as: captain, ...dialling });
  expect([answer.code, answer.code === OK]).toEqual([UNAVAILABLE, false]);
});

test('a data node that answers with authority’s certificate is not taken for one', async () => {
  const imposter = mkdtempSync(join(tmpdir(), 'wheelhouse-imposter-'));
  const container = `${deployment.project}-imposter`;
  try {
    mkdirSync(join(imposter, 'ca'));
    mkdirSync(join(imposter, 'identities', 'service'), { recursive: true });
    copyFileSync(rootPaths(ours).certificate, rootPaths(imposter).certificate);
    const real = identityPaths(ours, 'service', 'authority');
    const worn = identityPaths(imposter, 'service', 'data.local');
    copyFileSync(real.certificate, worn.certificate);
    copyFileSync(real.key, worn.key);
    const env = ['WHEELHOUSE_LISTEN=0.0.0.0:7412', 'WHEELHOUSE_ADVERTISE=imposter:7412'];
    const where = ['--network', `${deployment.project}_planes`, '--network-alias', 'imposter'];
    const mount = ['--volume', `${imposter}:/var/lib/wheelhouse:ro`];
    const named = ['--detach', '--init', '--name', container];
    const set = env.flatMap((entry) => ['--env', entry]);
    await docker('run', ...named, ...where, ...mount, ...set, deployment.images.data);
    await listens(container);
    const asked = { folder: 'ours', as: captain, endpoint: 'imposter:7412' } as const;
    expect(await dial({ ...asked, expecting: 'data' })).toMatchObject({ code: UNAVAILABLE });
    // It does answer: to who takes it for what its certificate says.
    expect(await dial({ ...asked, expecting: 'authority' })).toMatchObject({ code: UNIMPLEMENTED });
  } finally {
    await docker('rm', '--force', container);
    rmSync(imposter, { recursive: true });
  }
});

async function listens(container: string): Promise<void> {
  await eventually(
    'the imposter listens',
    async () => (await docker('logs', container)).includes('"port":7412'),
    30_000,
  );
}
