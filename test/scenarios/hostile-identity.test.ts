/** Who is turned away, by what name, and that nobody honest talks to an impostor. */
import 'reflect-metadata';
import { createPrivateKey, webcrypto } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { connect as connectTls } from 'node:tls';
import {
  Server,
  ServerCredentials,
  status,
  type UntypedServiceImplementation,
} from '@grpc/grpc-js';
import * as x509 from '@peculiar/x509';
import { describe, expect, test } from 'vitest';
import { uriOf } from '#chassis/caller.js';
import type { KeyedCertificate } from '#chassis/certificates.js';
import { type LoadedIdentity, readIdentity, rootPaths } from '#chassis/identity-files.js';
import { type ChannelName, methodCallers } from '#gen/channels.js';
import { AuthorityServiceService } from '#gen/wheelhouse/authority/v1/authority.js';
import type { ReasonName } from '#kernel/refusal.js';
import { announceEndpoints } from '../stack/announce.js';
import { within } from '../stack/eventually.js';
import { falsifier, type Subject } from '../stack/falsifier.js';
import { type Plane, planes, type Stack } from '../stack/stack.js';
import { startStack } from '../stack/start-stack.js';
import { mintIdentity, mintStranger } from '../stack/state-folder.js';
import { outcomeOf, RawConnection } from './hostile-client.js';
import { echo, loggedNoBug, stillServes } from './hostile-room.js';
import { product, Room } from './room.js';

const present = '/wheelhouse.data.v1.DataService/Present';
const listWorkers = '/wheelhouse.authority.v1.AuthorityService/ListWorkers';
const anyCall: Readonly<Record<Plane, string>> = { authority: listWorkers, data: present };
const statusOf: Readonly<Record<Plane, string>> = {
  authority: '/wheelhouse.authority.v1.AuthorityService/FollowStatus',
  data: '/wheelhouse.data.v1.DataService/FollowStatus',
};

function planeOf(path: string): Plane {
  return path.startsWith('/wheelhouse.data.') ? 'data' : 'authority';
}

/** A certificate of this deployment's root that names its holder in whatever way. */
async function minted(stack: Stack, names: x509.JsonGeneralNames): Promise<LoadedIdentity> {
  const root = rootPaths(stack.stateDir);
  const rootPem = readFileSync(root.certificate, 'utf8');
  const algorithm = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' } as const;
  const pkcs8 = createPrivateKey(readFileSync(root.key)).export({ type: 'pkcs8', format: 'der' });
  const { subtle } = webcrypto;
  const signingKey = await subtle.importKey('pkcs8', pkcs8, algorithm, false, ['sign']);
  const keys = (await subtle.generateKey(algorithm, true, [
    'sign',
    'verify',
  ])) as webcrypto.CryptoKeyPair;
  const certificate = await x509.X509CertificateGenerator.create({
    subject: 'CN=operator',
    issuer: new x509.X509Certificate(rootPem).subject,
    notBefore: new Date(Date.now() - 60_000),
    notAfter: new Date(Date.now() + 600_000),
    publicKey: keys.publicKey,
    signingKey,
    signingAlgorithm: algorithm,
    extensions: [
      new x509.ExtendedKeyUsageExtension([x509.ExtendedKeyUsage.clientAuth], false),
      ...(names.length === 0 ? [] : [new x509.SubjectAlternativeNameExtension(names)]),
    ],
  });
  const exported = await subtle.exportKey('pkcs8', keys.privateKey);
  const keyPem = x509.PemConverter.encode(exported, 'PRIVATE KEY');
  return { identity: { certificatePem: certificate.toString('pem'), keyPem }, rootPem };
}

const operatorUri = uriOf('human-control', 'operator');

/** Each of them signed by the right root, and none of them a name that this system gives. */
const oddNames: Readonly<Record<string, x509.JsonGeneralNames>> = {
  'no name at all': [],
  'a host': [{ type: 'dns', value: 'localhost' }],
  'the right URI as a host': [{ type: 'dns', value: operatorUri }],
  'two roles': [
    { type: 'url', value: operatorUri },
    { type: 'url', value: uriOf('agent', 'demo') },
  ],
  'another trust domain': [{ type: 'url', value: 'spiffe://elsewhere/human-control/operator' }],
  'another scheme': [{ type: 'url', value: 'https://wheelhouse/human-control/operator' }],
  'an unknown role': [{ type: 'url', value: 'spiffe://wheelhouse/root/operator' }],
  'a role alone': [{ type: 'url', value: 'spiffe://wheelhouse/human-control' }],
  'an empty name': [{ type: 'url', value: 'spiffe://wheelhouse/human-control/' }],
  'a name of another form': [{ type: 'url', value: 'spiffe://wheelhouse/human-control/Operator' }],
  'a way upwards': [{ type: 'url', value: 'spiffe://wheelhouse/agent/../human-control/operator' }],
  'an operator with a node': [{ type: 'url', value: `${operatorUri}/local` }],
  'a service with two nodes': [{ type: 'url', value: 'spiffe://wheelhouse/service/data/a/b' }],
  'a name without end': [{ type: 'url', value: `${operatorUri}${'x'.repeat(10_000)}` }],
  'a name with a line after it': [{ type: 'url', value: `${operatorUri}\n` }],
  'a name with a NUL after it': [{ type: 'url', value: `${operatorUri}\0.example` }],
  'a host that spells a URI': [{ type: 'dns', value: `x, URI:${operatorUri}` }],
  'a URI that spells another': [{ type: 'url', value: `https://x/, URI:${operatorUri}` }],
};

async function unidentified(subject: Subject): Promise<void> {
  await using room = await Room.open(subject);
  await using run = await room.runs(echo);
  await run.shows(/ready/);
  for (const [what, names] of Object.entries(oddNames)) {
    const odd = await minted(room.stack, names);
    for (const plane of planes) {
      const outcome = await outcomeOf(room.stack.endpoints[plane], odd, anyCall[plane]);
      expect(`${what}: ${outcome}`).toBe(`${what}: CALLER_UNIDENTIFIED`);
    }
  }
  await stillServes(room, run);
}

async function strangers(subject: Subject): Promise<void> {
  await using room = await Room.open(subject);
  await using run = await room.runs(echo);
  await run.shows(/ready/);
  const { stateDir, endpoints } = room.stack;
  const { rootPem } = room.agent;
  const past = { notAfterMs: Date.now() - 1_000 };
  const turnedAway: Readonly<Record<string, Partial<LoadedIdentity>>> = {
    'another root': await mintStranger(stateDir, 'human-control', 'operator'),
    'another root, as a service': await mintStranger(stateDir, 'service', 'authority'),
    'no certificate': { rootPem },
    'a certificate past its end': await mintIdentity(stateDir, 'human-control', 'late', past),
  };
  for (const [what, identity] of Object.entries(turnedAway)) {
    for (const plane of planes) {
      const outcome = await outcomeOf(endpoints[plane], identity, anyCall[plane]);
      expect(`${what}: ${outcome}`).toBe(`${what}: turned away`);
    }
  }
  await stillServes(room, run);
}

/** A connection outlives its handshake: whoever still holds one is told at the next call. */
async function certificateEnds(subject: Subject): Promise<void> {
  await using stack = await startStack(subject);
  const { stateDir, endpoints } = stack;
  const notAfterMs = Date.now() + 5_000;
  const brief = await mintIdentity(stateDir, 'service', 'control', { notAfterMs });
  using toAuthority = await RawConnection.open(endpoints.authority, brief);
  using toData = await RawConnection.open(endpoints.data, brief);
  const connections = { authority: toAuthority, data: toData };
  const asks = async (plane: Plane): Promise<string> => {
    const call = connections[plane].call(statusOf[plane]);
    call.send(new Uint8Array());
    call.finish();
    const answer = await call.answered();
    call.cancel();
    return answer;
  };
  const ticket = await ticketOf(endpoints.authority, brief);
  for (const plane of planes) {
    expect(await asks(plane)).toBe('granted');
  }
  await delay(notAfterMs - Date.now());
  for (const plane of planes) {
    expect(await asks(plane)).toBe('CERTIFICATE_EXPIRED');
    expect(await outcomeOf(endpoints[plane], brief, statusOf[plane])).toBe('turned away');
  }
  expect(['CERTIFICATE_EXPIRED', 'turned away']).toContain(
    await resumedOutcome(endpoints.authority, brief, ticket),
  );
  loggedNoBug(stack);
}

/** What a server gives a client that may come back without showing its certificate again. */
async function ticketOf(endpoint: string, { identity, rootPem }: LoadedIdentity): Promise<Buffer> {
  const [host, port] = endpoint.split(':');
  const socket = connectTls({
    host: host!,
    port: Number(port),
    ca: rootPem,
    cert: identity.certificatePem,
    key: identity.keyPem,
    ALPNProtocols: ['h2'],
    checkServerIdentity: () => undefined,
  });
  const ticket = new Promise<Buffer>((resolve, reject) => {
    socket.once('session', resolve).once('error', reject);
  });
  return await within('a ticket', 10_000, ticket).finally(() => socket.destroy());
}

async function resumedOutcome(
  endpoint: string,
  identity: LoadedIdentity,
  session: Buffer,
): Promise<string> {
  try {
    using connection = await RawConnection.open(endpoint, identity, { session });
    const call = connection.call(statusOf.authority);
    call.send(new Uint8Array());
    call.finish();
    const answer = await call.answered();
    return answer === 'lost' ? 'turned away' : answer;
  } catch {
    return 'turned away';
  }
}

/** In the order in which a refusal is named: after the most demanding channel that would have done. */
const refusedAs: readonly (readonly [ChannelName, ReasonName])[] = [
  ['HUMAN_CONTROL', 'ROLE_NOT_HUMAN_CONTROL'],
  ['AGENT', 'ROLE_NOT_AGENT'],
  ['SERVICE', 'ROLE_NOT_SERVICE'],
];

/** Every RPC asked by everybody who may not ask it. */
async function wrongRoles(subject: Subject): Promise<void> {
  await using room = await Room.open(subject);
  await using run = await room.runs(echo);
  await run.shows(/ready/);
  const { stack } = room;
  const callers: Readonly<Record<ChannelName, LoadedIdentity>> = {
    HUMAN_CONTROL: await stack.identityFor('human-control', 'operator'),
    AGENT: run.bind.identity,
    CREATOR: await stack.identityFor('creator', 'someone'),
    SERVICE: readIdentity(stack.stateDir, 'service', 'data.local'),
  };
  let count = 0;
  for (const [path, allowed] of Object.entries(methodCallers)) {
    const [, reason] = refusedAs.find(([channel]) => allowed.includes(channel)) ?? [];
    for (const [channel, identity] of Object.entries(callers)) {
      if (!allowed.includes(channel as ChannelName)) {
        const outcome = await outcomeOf(stack.endpoints[planeOf(path)], identity, path);
        expect(`${channel} ${path}: ${outcome}`).toBe(`${channel} ${path}: ${reason}`);
        count += 1;
      }
    }
  }
  expect(count).toBeGreaterThan(30);
  // A service that is no data node has nothing to resolve.
  const resolve = '/wheelhouse.authority.v1.AuthorityService/Resolve';
  const other = await stack.identityFor('service', 'control');
  expect(await outcomeOf(stack.endpoints.authority, other, resolve)).toBe('ROLE_NOT_SERVICE');
  await stillServes(room, run);
}

/** Something that answers where authority should, with a certificate of this deployment or another. */
class Impostor implements Disposable {
  readonly #server: Server;
  readonly endpoint: string;
  /** What was asked of it. */
  readonly asked: readonly string[];

  private constructor(server: Server, endpoint: string, asked: readonly string[]) {
    this.#server = server;
    this.endpoint = endpoint;
    this.asked = asked;
  }

  static async with({ identity, rootPem }: LoadedIdentity): Promise<Impostor> {
    const asked: string[] = [];
    const server = new Server();
    server.addService(AuthorityServiceService, answeringNothing(asked));
    const credentials = ServerCredentials.createSsl(Buffer.from(rootPem), [pairOf(identity)]);
    const port = await new Promise<number>((resolve, reject) => {
      server.bindAsync('127.0.0.1:0', credentials, (error, bound) =>
        error === null ? resolve(bound) : reject(error),
      );
    });
    return new Impostor(server, `127.0.0.1:${port}`, asked);
  }

  [Symbol.dispose](): void {
    this.#server.forceShutdown();
  }
}

function pairOf({ certificatePem, keyPem }: KeyedCertificate) {
  return { cert_chain: Buffer.from(certificatePem), private_key: Buffer.from(keyPem) };
}

/** Takes note of every call and ends it. */
function answeringNothing(asked: string[]): UntypedServiceImplementation {
  const names = Object.keys(AuthorityServiceService) as (keyof typeof AuthorityServiceService)[];
  return Object.fromEntries(
    names.map((name) => [
      name,
      (call: NodeJS.EventEmitter, callback?: (error: object) => void) => {
        asked.push(name);
        const end = { code: status.UNAVAILABLE, details: 'an impostor' };
        if (callback === undefined) {
          call.emit('error', end);
        } else {
          callback(end);
        }
      },
    ]),
  );
}

/** A client that reaches anything but the service it means tells it nothing. */
async function impostors(subject: Subject): Promise<void> {
  await using stack = await startStack(subject);
  const { stateDir, endpoints } = stack;
  const listing = ['worker', 'list', '--as', 'human-control/operator'];
  await stack.identityFor('human-control', 'operator');
  expect((await stack.wheelhouse(listing)).code).toBe(0);
  const answering: Readonly<Record<string, LoadedIdentity>> = {
    'an agent': await stack.identityFor('agent', 'demo'),
    'another service': readIdentity(stateDir, 'service', 'data.local'),
    'another root': await mintStranger(stateDir, 'service', 'authority'),
  };
  for (const [what, identity] of Object.entries(answering)) {
    using impostor = await Impostor.with(identity);
    announceEndpoints(stateDir, { ...endpoints, authority: impostor.endpoint });
    const { code } = await stack.wheelhouse(listing);
    expect({ what, code, asked: impostor.asked }).toEqual({ what, code: 4, asked: [] });
  }
  loggedNoBug(stack);
}

describe('hostile identities', () => {
  test('another root, no certificate, one past its end: no connection lasts for a call', () =>
    strangers(product));
  test('the right root without a name of ours is caller-unidentified', () => unidentified(product));
  falsifier(
    'caller-unidentified: one name and no more',
    {
      file: 'services/chassis/caller.ts',
      find: 'uris.length === 1',
      replace: 'uris.length > 0',
    },
    unidentified,
  );
  test('a connection that outlives its certificate is told certificate-expired', () =>
    certificateEnds(product));
  falsifier(
    'certificate-expired on a new call',
    {
      file: 'services/chassis/grpc-server.ts',
      find: 'caller.value.notAfterMs <= clock.now()',
      replace: 'false',
    },
    certificateEnds,
  );
  test('every RPC is refused by name to every role that may not ask it', () => wrongRoles(product));
  falsifier(
    'the declared channels',
    {
      file: 'services/chassis/grpc-server.ts',
      find: 'ROLE_OF[channel] === caller.role',
      replace: 'true',
    },
    wrongRoles,
  );
  test('a client turns away whoever is not the service it means', () => impostors(product));
  falsifier(
    'who answers is checked',
    {
      file: 'services/chassis/grpc-client.ts',
      find: 'return isExpected',
      replace: 'return true',
    },
    impostors,
  );
});
