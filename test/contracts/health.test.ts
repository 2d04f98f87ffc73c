/** Health and reflection as anybody with an identity of the deployment sees them, on real processes. */
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { fromBinary } from '@bufbuild/protobuf';
import { FileDescriptorProtoSchema } from '@bufbuild/protobuf/wkt';
import { Metadata, type ServiceError, status } from '@grpc/grpc-js';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { clientCredentials, clientOptions } from '#chassis/grpc-client.js';
import { refusalOf } from '#chassis/refusal-status.js';
import {
  HealthClient,
  type HealthCheckResponse_ServingStatus as Status,
} from '#gen/grpc/health/v1/health.js';
import {
  ServerReflectionClient,
  type ServerReflectionRequest,
  type ServerReflectionResponse,
} from '#gen/grpc/reflection/v1/reflection.js';
import { ServerReflectionClient as AlphaClient } from '#gen/grpc/reflection/v1alpha/reflection.js';
import { eventually } from '../stack/eventually.js';
import { startProcesses } from '../stack/processes.js';
import type { Plane, Stack, StackOptions } from '../stack/stack.js';
import { ownDist } from '../stack/stack-home.js';
import { mintStranger } from '../stack/state-folder.js';
import { readDescriptors } from '../tidy/descriptors.js';
import { root } from '../tidy/project.js';

const namesOf: Readonly<Record<Plane, readonly string[]>> = {
  authority: ['', 'wheelhouse.authority.v1.AuthorityService', 'journal', 'bus'],
  data: ['', 'wheelhouse.data.v1.DataService', 'authority-link', 'terminals'],
};

async function dial(
  stack: Stack,
  plane: Plane,
  role: Parameters<Stack['identityFor']>[0] = 'human-control',
): Promise<HealthClient & Disposable> {
  const credentials = await stack.credentialsFor(role, 'prober', plane);
  const client = new HealthClient(stack.endpoints[plane], credentials, clientOptions);
  return Object.assign(client, { [Symbol.dispose]: () => client.close() });
}

const NAMES = ['UNKNOWN', 'SERVING', 'NOT_SERVING', 'SERVICE_UNKNOWN'] as const;

/** The status by its name, or how the call ended. */
function check(client: HealthClient, service: string): Promise<string> {
  const options = { deadline: Date.now() + 5_000 };
  return new Promise((resolve) => {
    client.check({ service }, new Metadata(), options, (error, response) => {
      resolve(error === null ? nameOf(response.status) : (status[error.code] ?? '?'));
    });
  });
}

function nameOf(found: Status): string {
  return NAMES[found];
}

function statuses(client: HealthClient): Promise<Record<string, string>> {
  return new Promise((resolve, reject) => {
    client.list({}, (error, response) => {
      const entries = Object.entries(response?.statuses ?? {});
      const named = entries.map(([name, { status: found }]) => [name, nameOf(found)]);
      return error === null ? resolve(Object.fromEntries(named)) : reject(error);
    });
  });
}

/** What a watcher was told, and the refusal that it ended with. */
interface Watched extends Disposable {
  readonly told: readonly string[];
  readonly end: () => ServiceError | undefined;
}

function watch(client: HealthClient, service: string): Watched {
  const told: string[] = [];
  let end: ServiceError | undefined;
  const call = client.watch({ service });
  call.on('data', ({ status: found }: { status: Status }) => told.push(nameOf(found)));
  call.on('error', (error: ServiceError) => {
    end = error;
  });
  return { told, end: () => end, [Symbol.dispose]: () => call.cancel() };
}

/** The probe of a service against itself: its exit code and its line. */
function probe(stack: Pick<Stack, 'stateDir' | 'endpoints'>, plane: Plane, ...args: string[]) {
  const as = plane === 'data' ? 'data.local' : plane;
  const program = join(ownDist, 'services', 'chassis', 'health-probe.js');
  const all = [program, stack.endpoints[plane], '--as', as, ...args];
  const env = { ...process.env, WHEELHOUSE_STATE: stack.stateDir };
  return new Promise<{ code: number; line: string }>((resolve) => {
    execFile(process.execPath, all, { env, timeout: 10_000 }, (error, stdout, stderr) => {
      const code = error === null ? 0 : Number(error.code ?? -1);
      resolve({ code, line: `${stdout}${stderr}`.trimEnd() });
    });
  });
}

const withSettings = (settings: StackOptions['settings'] & object) => startProcesses({ settings });

describe('a stack that is well', () => {
  let stack: Stack;
  beforeAll(async () => {
    stack = await startProcesses();
  });
  afterAll(() => stack[Symbol.asyncDispose]());

  test.each(['authority', 'data'] as const)('%s serves in all it is made of', async (plane) => {
    using client = await dial(stack, plane);
    for (const name of namesOf[plane]) {
      expect([name, await check(client, name)]).toEqual([name, 'SERVING']);
      using watched = watch(client, name);
      await eventually('the first status', () => watched.told.length > 0);
      expect(watched.told).toEqual(['SERVING']);
    }
    const all = namesOf[plane].map((name) => [name, 'SERVING']);
    expect(await statuses(client)).toEqual(Object.fromEntries(all));
  });

  test.each(['human-control', 'agent', 'creator', 'service'] as const)(
    'any identity may ask: %s',
    async (role) => {
      using client = await dial(stack, 'data', role);
      expect(await check(client, '')).toBe('SERVING');
    },
  );

  test('who is of another root may not', async () => {
    const { identity, rootPem } = await mintStranger(stack.stateDir, 'human-control', 'mallory');
    const credentials = clientCredentials(identity, rootPem, { plane: 'data' });
    const client = new HealthClient(stack.endpoints.data, credentials, clientOptions);
    expect(await check(client, '')).toBe('UNAVAILABLE');
    client.close();
  });

  test('an unknown name is NOT_FOUND to check, and SERVICE_UNKNOWN to watch, which goes on', async () => {
    using client = await dial(stack, 'authority');
    expect(await check(client, 'terminals')).toBe('NOT_FOUND');
    using watched = watch(client, 'terminals');
    await eventually('the first status', () => watched.told.length > 0);
    expect(await check(client, '')).toBe('SERVING');
    expect([watched.told, watched.end()]).toEqual([['SERVICE_UNKNOWN'], undefined]);
  });

  test('the contract is not described unless the setting says so', async () => {
    const credentials = await stack.credentialsFor('human-control', 'prober', 'data');
    const client = new ServerReflectionClient(stack.endpoints.data, credentials, clientOptions);
    await expect(reflect(client, [listServices])).rejects.toMatchObject({
      code: status.UNIMPLEMENTED,
    });
    client.close();
  });

  test('the probe exits 0 for what serves, and 1 with a line for what does not exist', async () => {
    expect(await probe(stack, 'data')).toEqual({ code: 0, line: 'the service: serving' });
    expect(await probe(stack, 'authority', '--part', 'journal')).toEqual({
      code: 0,
      line: 'journal: serving',
    });
    const { code, line } = await probe(stack, 'authority', '--part', 'terminals');
    expect(code).toBe(1);
    expect(line).toMatch(/^no answer: no such service or part[^\n]*$/);
  });

  test('the probe takes no other service for its own', async () => {
    const { stateDir } = stack;
    const endpoints = { ...stack.endpoints, authority: stack.endpoints.data };
    const { code, line } = await probe({ stateDir, endpoints }, 'authority');
    expect(code).toBe(1);
    expect(line).toContain('service/data/local, not spiffe://wheelhouse/service/authority');
  });

  test('the probe gives up on a service that stands still', async () => {
    await stack.pause('data');
    const before = performance.now();
    const { code, line } = await probe(stack, 'data');
    await stack.resume('data');
    expect(code).toBe(1);
    expect(line).toMatch(/^no answer: /);
    expect(performance.now() - before).toBeLessThan(5_000);
  });
});

describe('the command', () => {
  test('status and doctor say which part does not serve, and what that means', async () => {
    const max = String(Number.MAX_SAFE_INTEGER);
    await using stack = await withSettings({
      authority: { WHEELHOUSE_JOURNAL_LOW_WATER_BYTES: max },
    });
    const status = await stack.wheelhouse(['status']);
    const [, line] = /^(authority journal .*)$/m.exec(String(status.stdout)) ?? [];
    expect(line).toMatch(/not serving: its disk is full or nearly so: nothing new begins/);
    expect(status.code).toBe(0);
    const doctor = await stack.wheelhouse(['doctor']);
    expect(String(doctor.stdout)).toMatch(/^authority +unwell +journal is not serving: its disk/m);
    expect(doctor.code).toBe(4);
  });

  test('a node without authority is not serving to status, which says why', async () => {
    await using stack = await startProcesses();
    await stack.crash('authority');
    using client = await dial(stack, 'data');
    await eventually('noticed', async () => (await check(client, '')) === 'NOT_SERVING');
    const table = await stack.wheelhouse(['status']);
    expect(String(table.stdout)).toMatch(/^authority +\S+ unreachable$/m);
    expect(String(table.stdout)).toMatch(/^data.local +\S+ not serving$/m);
    expect(String(table.stdout)).toMatch(
      /authority-link +not serving: authority does not answer it/,
    );
    expect(table.code).toBe(4);
    const json = await stack.wheelhouse(['status', '--json']);
    expect(JSON.parse(String(json.stdout))).toMatchObject({
      services: [
        { service: 'authority', health: 'unreachable', parts: {} },
        {
          service: 'data.local',
          health: 'not serving',
          parts: { 'authority-link': 'not serving', terminals: 'serving' },
        },
      ],
    });
  });
});

describe('parts', () => {
  test('the journal does not serve under its low water, and authority does', async () => {
    const max = String(Number.MAX_SAFE_INTEGER);
    await using stack = await withSettings({
      authority: { WHEELHOUSE_JOURNAL_LOW_WATER_BYTES: max },
    });
    using client = await dial(stack, 'authority');
    expect(await statuses(client)).toMatchObject({
      '': 'SERVING',
      journal: 'NOT_SERVING',
      bus: 'SERVING',
    });
    expect(await probe(stack, 'authority')).toMatchObject({ code: 0 });
    expect(await probe(stack, 'authority', '--part', 'journal')).toEqual({
      code: 1,
      line: 'journal: not serving',
    });
  });

  test('a bus that is away does not serve, and authority does', async () => {
    await using stack = await withSettings({
      authority: { WHEELHOUSE_BUS: 'nats://127.0.0.1:1' },
    });
    using client = await dial(stack, 'authority');
    expect(await statuses(client)).toMatchObject({
      '': 'SERVING',
      journal: 'SERVING',
      bus: 'NOT_SERVING',
    });
  });

  test('a node without authority does not serve, until authority is back', async () => {
    await using stack = await startProcesses();
    using client = await dial(stack, 'data');
    using link = watch(client, 'authority-link');
    using whole = watch(client, '');
    using terminals = watch(client, 'terminals');
    await eventually('both are told', () => whole.told.length + link.told.length === 2);
    await stack.crash('authority');
    await eventually('the node says so', () => whole.told.length + link.told.length === 4);
    expect(await check(client, 'wheelhouse.data.v1.DataService')).toBe('NOT_SERVING');
    await stack.restart('authority');
    await eventually('the node is back', () => whole.told.length + link.told.length === 6);
    const expected = ['SERVING', 'NOT_SERVING', 'SERVING'];
    expect([link.told, whole.told, terminals.told]).toEqual([expected, expected, ['SERVING']]);
  });

  test('a full node makes no more terminals, and serves', async () => {
    await using stack = await withSettings({ data: { WHEELHOUSE_TERMINALS_MAX: '1' } });
    using client = await dial(stack, 'data');
    using terminals = watch(client, 'terminals');
    await stack.wheelhouse(['worker', 'open', 'w', '--workspace', stack.workspace]);
    const run = stack.start(['run', 'w', '--headless', '--', 'sleep', '60']);
    await eventually('the node is full', () => terminals.told.at(-1) === 'NOT_SERVING');
    expect(await check(client, '')).toBe('SERVING');
    await stack.wheelhouse(['worker', 'close', 'w']);
    await eventually('it has room again', () => terminals.told.length === 3);
    expect(terminals.told).toEqual(['SERVING', 'NOT_SERVING', 'SERVING']);
    await run.ended;
  });

  test.each(['authority', 'data'] as const)(
    '%s says that it drains, in all it is made of, before it ends',
    async (plane) => {
      await using stack = await startProcesses();
      using client = await dial(stack, plane);
      const all = namesOf[plane].map((name) => watch(client, name));
      await eventually('all are told', () => all.every(({ told }) => told.length === 1));
      await stack.drain(plane);
      await eventually('all have ended', () => all.every(({ end }) => end() !== undefined));
      for (const { told, end } of all) {
        expect(told).toEqual(['SERVING', 'NOT_SERVING']);
        expect(refusalOf(end() as ServiceError)?.reason).toBe('SERVICE_DRAINING');
      }
    },
  );
});

type Asked = NonNullable<ServerReflectionRequest['messageRequest']>;
const listServices: Asked = { $case: 'listServices', value: '' };

/** Answers to questions, in order. */
function reflect(
  client: Pick<ServerReflectionClient, 'serverReflectionInfo'>,
  asked: readonly Asked[],
): Promise<ServerReflectionResponse[]> {
  const call = client.serverReflectionInfo();
  const answers: ServerReflectionResponse[] = [];
  return new Promise((resolve, reject) => {
    call.on('data', (answer: ServerReflectionResponse) => answers.push(answer));
    call.on('error', reject);
    call.on('end', () => resolve(answers));
    for (const messageRequest of asked) {
      call.write({ host: '', messageRequest });
    }
    call.end();
  });
}

describe('reflection', () => {
  let stack: Stack;
  beforeAll(async () => {
    const on = { WHEELHOUSE_REFLECTION: '1' };
    stack = await withSettings({ authority: on, data: on });
  });
  afterAll(() => stack[Symbol.asyncDispose]());

  test.each([
    ['v1', ServerReflectionClient],
    ['v1alpha', AlphaClient],
  ] as const)(
    '%s lists what may be called, and describes exactly the contract',
    async (_, Client) => {
      const credentials = await stack.credentialsFor('agent', 'prober', 'data');
      const client = new Client(stack.endpoints.data, credentials, clientOptions);
      const registry = readDescriptors(root);
      const files = [...registry.files].map(({ proto }) => proto.name);
      const [list, ...described] = await reflect(client as ServerReflectionClient, [
        listServices,
        ...files.map((value): Asked => ({ $case: 'fileByFilename', value })),
      ]);
      expect(list?.messageResponse?.value).toEqual({
        service: [
          'wheelhouse.data.v1.DataService',
          'grpc.health.v1.Health',
          'grpc.reflection.v1.ServerReflection',
          'grpc.reflection.v1alpha.ServerReflection',
        ].map((name) => ({ name })),
      });
      expect(described).toHaveLength(files.length);
      for (const [place, { messageResponse }] of described.entries()) {
        const value = messageResponse?.value as { fileDescriptorProto: Buffer[] };
        const first = fromBinary(FileDescriptorProtoSchema, value.fileDescriptorProto[0] as Buffer);
        const source = registry.getFile(files[place] as string)?.proto;
        expect(first.messageType).toEqual(source?.messageType);
        expect(first.service).toEqual(source?.service);
        expect(first.name).toBe(files[place]);
      }
      client.close();
    },
  );

  test('what is not of the contract is answered as not found, and the stream goes on', async () => {
    const credentials = await stack.credentialsFor('human-control', 'prober', 'authority');
    const client = new ServerReflectionClient(
      stack.endpoints.authority,
      credentials,
      clientOptions,
    );
    const answers = await reflect(client, [
      { $case: 'fileContainingSymbol', value: 'wheelhouse.Nothing' },
      { $case: 'fileContainingSymbol', value: 'wheelhouse.authority.v1.AuthorityService.Bind' },
    ]);
    expect(answers.map(({ messageResponse }) => messageResponse?.$case)).toEqual([
      'errorResponse',
      'fileDescriptorResponse',
    ]);
    expect(answers[0]?.messageResponse?.value).toMatchObject({ errorCode: status.NOT_FOUND });
    client.close();
  });

  test('who is of another root learns nothing', async () => {
    const { identity, rootPem } = await mintStranger(stack.stateDir, 'human-control', 'mallory');
    const credentials = clientCredentials(identity, rootPem, { plane: 'data' });
    const client = new ServerReflectionClient(stack.endpoints.data, credentials, clientOptions);
    await expect(reflect(client, [listServices])).rejects.toMatchObject({
      code: status.UNAVAILABLE,
    });
    client.close();
  });
});
