/** A deployment whose parts die or are cut off from each other: compose brings them back, and nothing but time is lost. */
import { afterAll, beforeAll, beforeEach, describe, expect, type TestContext, test } from 'vitest';
import { took } from '../scenarios/figure.js';
import type { CliProcess } from '../stack/cli-process.js';
import { eventually } from '../stack/eventually.js';
import { hasTool, needs } from '../stack/machine.js';
import { cutOff, healed } from '../stack/network-cut.js';
import { bringUp, type Deployment, type ServiceName } from './deployment.js';
import { docker } from './engine-command.js';

let deployment: Deployment;

beforeAll(async () => {
  if (hasTool('docker')) {
    deployment = await bringUp();
    await cli('worker', 'open', 'ticker');
    await runs();
  }
});
afterAll(async () => {
  await deployment?.[Symbol.asyncDispose]();
});
beforeEach((context) => needs(context, 'docker', 'root'));

const BACK_MS = 60_000;

async function cli(...args: readonly string[]): Promise<string> {
  const { code, stdout, stderr } = await deployment.cli(args);
  expect([args.join(' '), code, code === 0 ? '' : stderr]).toEqual([args.join(' '), 0, '']);
  return String(stdout);
}

async function runs(): Promise<void> {
  const program = ['sh', '-c', 'while :; do echo tick; sleep 0.05; done'];
  await cli('run', 'ticker', '-d', '--headless', '--', ...program);
}

function watches(): CliProcess {
  return deployment.startCli(['watch', 'ticker']);
}

/** The next look that shows something. */
async function shownAgain(): Promise<void> {
  await eventually(
    'the terminal is shown',
    async () => {
      await using look = watches();
      await look.printed(/tick/, 5_000);
      return true;
    },
    BACK_MS,
  );
}

/** What the engine says of a service's first process, as this machine counts, and where it is reached. */
async function placeOf(service: ServiceName): Promise<{ pid: number; addresses: string[] }> {
  const [{ State, NetworkSettings }] = JSON.parse(
    await docker('inspect', await deployment.containerOf(service)),
  );
  const networks = Object.values(NetworkSettings.Networks as Record<string, { IPAddress: string }>);
  return { pid: State.Pid, addresses: networks.map(({ IPAddress }) => IPAddress) };
}

/** Not through the engine, which would take it for somebody's wish. */
async function kill(service: ServiceName): Promise<void> {
  const { pid } = await placeOf(service);
  process.kill(pid, 'SIGKILL');
  await eventually('another has taken its place', async () => {
    const now = (await placeOf(service)).pid;
    return now !== pid && now !== 0;
  });
}

async function recovered(what: string, context: TestContext, since: number): Promise<void> {
  await shownAgain();
  took(context, what, since);
}

describe('killed, a service is started again by itself', () => {
  test('authority: the program goes on, and is shown again', async (context) => {
    const since = performance.now();
    await kill('authority');
    await recovered('deployment: authority killed, shown again after', context, since);
  });

  test('data: its programs are gone, and others run', async (context) => {
    const since = performance.now();
    await kill('data');
    await eventually('another program runs', () => runs().then(() => true), BACK_MS);
    await recovered('deployment: data killed, shown again after', context, since);
  });

  test('the broker: nobody watching notices', async () => {
    await using look = watches();
    await look.printed(/tick/);
    await kill('nats');
    await goesOn(look);
  });
});

/** The same look is shown more, and a command is answered. */
async function goesOn(look: CliProcess): Promise<void> {
  const before = look.stdout().length;
  await eventually('more is shown', () => look.stdout().length > before + 100);
  await cli('worker', 'list');
}

describe('the broker is no part of what is true', () => {
  test('paused, it costs nothing', async () => {
    await using look = watches();
    await look.printed(/tick/);
    await deployment.compose('pause', 'nats');
    await goesOn(look);
    await cli('worker', 'open', 'meanwhile');
    await deployment.compose('unpause', 'nats');
    await goesOn(look);
  });

  test('cut off from authority and healed, it costs nothing', async () => {
    await using look = watches();
    await look.printed(/tick/);
    const { addresses } = await placeOf('nats');
    const { pid } = await placeOf('authority');
    const cutWays = addresses.filter((address) => address !== '');
    for (const address of cutWays) {
      cutOff(pid, address);
    }
    await goesOn(look);
    await cli('worker', 'close', 'meanwhile');
    for (const address of cutWays) {
      healed(pid, address);
    }
    await goesOn(look);
  });
});
