/** The deployment of deploy/docker-compose.yml: what each part may do, and the command on the host. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { eventually } from '../stack/eventually.js';
import { hasTool, needs } from '../stack/machine.js';
import { bringUp, type Deployment, type ServiceName } from './deployment.js';
import { docker } from './engine-command.js';

let deployment: Deployment;

beforeAll(async () => {
  if (hasTool('docker')) {
    deployment = await bringUp();
  }
});
afterAll(async () => {
  await deployment?.[Symbol.asyncDispose]();
});
beforeEach((context) => needs(context, 'docker'));

const LONG_LIVED: readonly ServiceName[] = ['nats', 'authority', 'data'];
const NO_CAPABILITY = '0000000000000000';
/** CAP_KILL, CAP_SETGID and CAP_SETUID: bits 5, 6 and 7. */
const KILL_SETGID_SETUID = '00000000000000e0';

/** What /proc/<pid>/status says of every process in a container, but for those that ask. */
async function statusesIn(service: ServiceName): Promise<readonly string[]> {
  const { stdout } = await deployment.exec(service, 'sh', '-c', 'cat /proc/[0-9]*/status');
  const statuses = stdout
    .split(/^(?=Name:)/m)
    .filter((status) => !/^Name:\t(?:cat|sh)$/m.test(status));
  expect(statuses.length).toBeGreaterThanOrEqual(2);
  return statuses;
}

function field(status: string, name: string): string {
  return new RegExp(`^${name}:\\s*(.*?)\\s*$`, 'm').exec(status)?.[1] ?? 'none';
}

async function inspected(service: ServiceName): Promise<{
  readonly HostConfig: Readonly<Record<string, unknown>>;
  readonly NetworkSettings: {
    readonly Ports: Readonly<Record<string, readonly { readonly HostIp: string }[] | null>>;
    readonly Networks: Readonly<Record<string, unknown>>;
  };
}> {
  const [found] = JSON.parse(await docker('inspect', await deployment.containerOf(service)));
  return found;
}

describe('what each part may do', () => {
  test.each([
    ['authority', 10_000],
    ['nats', 10_002],
  ] as const)('%s is not root and has no capability', async (service, uid) => {
    for (const status of await statusesIn(service)) {
      expect(field(status, 'Uid').split(/\s+/)).toEqual(Array(4).fill(String(uid)));
      for (const name of ['CapInh', 'CapPrm', 'CapEff', 'CapBnd', 'CapAmb']) {
        expect([name, field(status, name)]).toEqual([name, NO_CAPABILITY]);
      }
      expect(field(status, 'NoNewPrivs')).toBe('1');
    }
  });

  test('data is root with SETUID, SETGID and KILL, and never gets more', async () => {
    for (const status of await statusesIn('data')) {
      expect(field(status, 'Uid').split(/\s+/)).toEqual(Array(4).fill('0'));
      expect(field(status, 'CapEff')).toBe(KILL_SETGID_SETUID);
      expect(field(status, 'CapBnd')).toBe(KILL_SETGID_SETUID);
      expect(field(status, 'NoNewPrivs')).toBe('1');
    }
  });

  test('the identity job has no network, and the capabilities that handing files over takes', async () => {
    const { HostConfig } = await inspected('identities');
    expect(HostConfig).toMatchObject({
      NetworkMode: 'none',
      CapDrop: ['ALL'],
      CapAdd: expect.arrayContaining(['CHOWN', 'DAC_OVERRIDE', 'FOWNER']),
      ReadonlyRootfs: true,
      SecurityOpt: ['no-new-privileges:true'],
    });
    expect(HostConfig['CapAdd']).toHaveLength(3);
  });

  test.each(LONG_LIVED)('the root of %s is read-only', async (service) => {
    // Where it can be written to, a user who owns nothing there is told of its modes instead.
    const { code, stderr } = await deployment.exec(service, 'sh', '-c', 'touch /etc/mine');
    expect([code, stderr]).toEqual([1, expect.stringMatching(/Read-only file system/)]);
  });

  test.each(LONG_LIVED)(
    '%s may use no more than its share of memory and processes',
    async (service) => {
      const { HostConfig } = await inspected(service);
      expect(HostConfig['Memory']).toBeGreaterThan(0);
      expect(HostConfig['PidsLimit']).toBeGreaterThan(0);
      expect(HostConfig['NanoCpus']).toBeGreaterThan(0);
      expect(HostConfig['Init']).toBe(true);
      expect(HostConfig['LogConfig']).toMatchObject({
        Type: 'json-file',
        Config: { 'max-size': '10m' },
      });
    },
  );
});

describe('what is reached from where', () => {
  test('nothing is published beyond loopback, and the broker not at all', async () => {
    const published = await Promise.all(
      LONG_LIVED.map(async (service) => {
        const { Ports } = (await inspected(service)).NetworkSettings;
        const addresses = Object.values(Ports).flatMap((bindings) => bindings ?? []);
        return [service, addresses.map(({ HostIp }) => HostIp)];
      }),
    );
    expect(Object.fromEntries(published)).toEqual({
      nats: [],
      authority: ['127.0.0.1'],
      data: ['127.0.0.1'],
    });
  });

  test('this machine listens for them on loopback only', () => {
    const ports = Object.values(deployment.ports);
    expect(ports.map((port) => listenersOn(port))).toEqual(ports.map(() => ['0100007F']));
  });

  test('data, and so a program in a terminal, does not reach the broker', async () => {
    const dial =
      'require("net").connect(4222, process.argv[1]).on("connect", () => process.exit(0)).on("error", () => process.exit(9)).setTimeout(2000, () => process.exit(9))';
    const addresses = await docker(
      'inspect',
      '--format',
      '{{range .NetworkSettings.Networks}}{{.IPAddress}} {{end}}',
      await deployment.containerOf('nats'),
    );
    for (const address of ['nats', ...addresses.trim().split(/\s+/)]) {
      expect((await deployment.exec('data', 'node', '-e', dial, address)).code).toBe(9);
      expect((await deployment.exec('authority', 'node', '-e', dial, address)).code).toBe(0);
    }
  });
});

test('authority is let onto the bus with its key, and who has none is not', async () => {
  const url = 'http://127.0.0.1:8222/connz?auth=true';
  const { authorized_user: name } = await eventually('authority is connected', async () => {
    const { stdout } = await deployment.exec('nats', 'wget', '-q', '-O', '-', url);
    return JSON.parse(stdout).connections[0] as { readonly authorized_user: string };
  });
  expect(name).toMatch(/^U[A-Z2-7]{55}$/);
  const anonymous =
    'require("net").connect(4222, "nats", function () { this.write("CONNECT {}\\r\\nPING\\r\\n"); }).pipe(process.stdout)';
  const { stdout } = await deployment.exec('authority', 'node', '-e', anonymous);
  expect(stdout).toContain('Authorization Violation');
  expect(stdout).not.toContain('PONG');
});

/** Local addresses that listen on a port, as /proc/net/tcp has them. */
function listenersOn(port: number): readonly string[] {
  const wanted = port.toString(16).toUpperCase().padStart(4, '0');
  return ['/proc/net/tcp', '/proc/net/tcp6'].flatMap((file) =>
    readFileSync(file, 'utf8')
      .split('\n')
      .map((line) => line.trim().split(/\s+/))
      .filter(([, local, , state]) => local?.endsWith(`:${wanted}`) && state === '0A')
      .map(([, local]) => local?.split(':')[0] ?? ''),
  );
}

describe('who holds what', () => {
  /** Names of the files in a volume, with mode and owner. */
  async function filesOf(volume: string): Promise<readonly string[]> {
    const mount = `${deployment.project}_${volume}:/held:ro`;
    const args = [
      '--rm',
      '--network',
      'none',
      '--user',
      '0',
      '--volume',
      mount,
      deployment.images.service,
    ];
    const found = await docker(
      'run',
      ...args,
      'find',
      '/held',
      '-type',
      'f',
      '-printf',
      '%m %U %P\n',
    );
    return found
      .split('\n')
      .filter((line) => line !== '' && !line.includes('journal.sqlite'))
      .sort();
  }

  test('authority has the root’s key, and nobody else’s identity', async () => {
    expect(await filesOf('authority')).toEqual([
      '600 10000 authority/ballast',
      '600 10000 bus/authority.seed',
      '600 10000 ca/root.crt',
      '600 10000 ca/root.key',
      '600 10000 identities/service/authority.crt',
      '600 10000 identities/service/authority.key',
    ]);
  });

  test('data has its identity and the root’s certificate', async () => {
    expect(await filesOf('data')).toEqual([
      '600 0 ca/root.crt',
      '600 0 identities/service/data.local.crt',
      '600 0 identities/service/data.local.key',
    ]);
  });

  test('the broker has public keys', async () => {
    expect(await filesOf('nats')).toEqual(['644 0 users.conf']);
  });

  test('the operator has no key of the root or of a service', () => {
    expect(deployment.stateFiles().filter((path) => !path.startsWith('workers/'))).toEqual([
      'ca/root.crt',
      'endpoints.json',
      'identities/creator/captain.crt',
      'identities/creator/captain.key',
      'identities/human-control/captain.crt',
      'identities/human-control/captain.key',
    ]);
    const { authority, data } = deployment.ports;
    expect(JSON.parse(readFileSync(join(deployment.stateDir, 'endpoints.json'), 'utf8'))).toEqual({
      authority: `127.0.0.1:${authority}`,
      data: { local: `127.0.0.1:${data}` },
      workspace: '/workspace',
    });
  });
});

describe('the command on the host', () => {
  test('opens, runs, watches and closes', async () => {
    const status = await deployment.cli(['status', '--json']);
    expect(status.code).toBe(0);
    expect(JSON.parse(String(status.stdout))).toMatchObject({ identity: 'human-control/captain' });

    const opened = await deployment.cli(['worker', 'open', 'builder', '--json']);
    expect(JSON.parse(String(opened.stdout))).toMatchObject({ workspace: '/workspace' });
    const ran = await deployment.cli(['run', 'builder', '--', 'bash', '-c', 'id -u; pwd; exit 7']);
    expect([ran.code, String(ran.stdout)]).toEqual([7, '10001\r\n/workspace\r\n']);

    const loop = 'for i in $(seq 100000); do echo line $i; sleep 0.05; done';
    const left = await deployment.cli([
      'run',
      'builder',
      '-d',
      '--headless',
      '--',
      'bash',
      '-c',
      loop,
    ]);
    expect(left.code).toBe(0);
    await using watching = deployment.startCli(['watch', 'builder']);
    await watching.printed(/line \d+\r\nline \d+/);
    expect((await deployment.cli(['worker', 'close', 'builder'])).code).toBe(0);
    expect(await watching.ended).toMatchObject({
      code: 3,
      stderr: expect.stringContaining('worker-closed'),
    });
  });

  test('hears by name that a workspace is not there', async () => {
    await deployment.cli(['worker', 'open', 'lost', '--workspace', 'nowhere']);
    const { code, stderr } = await deployment.cli(['run', 'lost', '--', 'true']);
    expect([code, stderr]).toEqual([125, expect.stringContaining('/workspace/nowhere')]);
    expect(stderr).toMatch(/^refused: [a-z-]+: /m);
    await deployment.cli(['worker', 'close', 'lost']);
  });
});

test('a second person is given an identity, and services new certificates, while all goes on', async () => {
  const root = readFileSync(join(deployment.stateDir, 'ca', 'root.crt'), 'utf8');
  await deployment.compose('run', '--rm', 'identities', 'issue', 'human-control/ada');
  const asAda = ['--as', 'human-control/ada'];
  expect((await deployment.cli(['status', ...asAda])).code).toBe(0);

  await deployment.compose('run', '--rm', 'identities', 'renew');
  await deployment.compose('restart', 'nats', 'authority', 'data');
  await eventually(
    'the services answer with their new certificates',
    async () => (await deployment.cli(['status', '--as', 'human-control/captain'])).code === 0,
    60_000,
  );
  const opened = await deployment.cli(['worker', 'open', 'ada-s', ...asAda]);
  expect([opened.code, opened.stderr]).toEqual([0, expect.any(String)]);
  expect(readFileSync(join(deployment.stateDir, 'ca', 'root.crt'), 'utf8')).toBe(root);
});
