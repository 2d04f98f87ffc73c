/** The compose file, brought up under a name of its own: own ports, own state folder, own volumes. */
import { randomBytes } from 'node:crypto';
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import {
  type CliExit,
  type CliOptions,
  type CliProcess,
  runCli,
  startCli,
} from '../stack/cli-process.js';
import { root } from '../tidy/project.js';
import { composeCommand, docker, printedBy, type Ran, run } from './engine-command.js';
import { builtImages, type Images } from './images.js';

export type ServiceName = 'identities' | 'nats' | 'authority' | 'data';

export interface Deployment extends AsyncDisposable {
  readonly project: string;
  readonly images: Images;
  /** On the host, as the command has it. */
  readonly stateDir: string;
  /** Paths of the files in it, in order. */
  stateFiles(): readonly string[];
  readonly ports: { readonly authority: number; readonly data: number };
  /** Runs compose and returns what it printed. Throws when it failed. */
  compose(...args: readonly string[]): Promise<string>;
  /** The same, whatever its code. */
  composeRan(...args: readonly string[]): Promise<Ran>;
  containerOf(service: ServiceName): Promise<string>;
  /** Runs a command in a service's container. */
  exec(service: ServiceName, ...command: readonly string[]): Promise<Ran>;
  /** Runs the command on the host, from the state folder. */
  cli(args: readonly string[], options?: CliOptions): Promise<CliExit>;
  startCli(args: readonly string[]): CliProcess;
}

/** Brings everything up and waits until it is healthy. */
export async function bringUp(): Promise<Deployment> {
  const images = await builtImages();
  const project = `wheelhouse-test-${randomBytes(4).toString('hex')}`;
  const stateDir = mkdtempSync(join(tmpdir(), 'wheelhouse-deploy-'));
  const ports = { authority: await freePort(), data: await freePort() };
  const env = {
    WHEELHOUSE_STATE_DIR: stateDir,
    WHEELHOUSE_AUTHORITY_PORT: String(ports.authority),
    WHEELHOUSE_DATA_PORT: String(ports.data),
    WHEELHOUSE_IMAGE_TAG: images.tag,
    WHEELHOUSE_OPERATOR: 'captain',
  };
  const [command, ...before] = composeCommand();
  const file = join(root, 'deploy', 'docker-compose.yml');
  const words = (args: readonly string[]) => [...before, '-p', project, '-f', file, ...args];
  const composeRan = (...args: readonly string[]): Promise<Ran> =>
    run(command, words(args), { env });
  const compose = async (...args: readonly string[]): Promise<string> =>
    printedBy(command, words(args), await composeRan(...args));
  const cliOf = (args: readonly string[]) => ({
    args: [join(root, 'dist', 'clients', 'cli', 'main.js'), ...args],
    env: { PATH: process.env['PATH'] ?? '', HOME: stateDir, WHEELHOUSE_STATE: stateDir },
    cwd: root,
  });
  const containerOf = async (service: ServiceName): Promise<string> => {
    const label = 'label=com.docker.compose';
    const filters = [`${label}.project=${project}`, `${label}.service=${service}`];
    const found = await docker('ps', '-aq', ...filters.flatMap((filter) => ['--filter', filter]));
    return found.trim();
  };
  const deployment: Deployment = {
    project,
    images,
    stateDir,
    ports,
    stateFiles: () =>
      readdirSync(stateDir, { recursive: true, withFileTypes: true })
        .filter((entry) => entry.isFile())
        .map((entry) => relative(stateDir, join(entry.parentPath, entry.name)))
        .sort(),
    compose,
    composeRan,
    containerOf,
    exec: async (service, ...args) =>
      await run('docker', ['exec', await containerOf(service), ...args]),
    cli: (args, options) => runCli(cliOf(args), options),
    startCli: (args) => startCli(cliOf(args)),
    [Symbol.asyncDispose]: async () => {
      await compose('down', '--volumes', '--timeout', '5');
      rmSync(stateDir, { recursive: true });
    },
  };
  try {
    await compose('up', '--detach', '--no-build');
    return deployment;
  } catch (error) {
    const logs = await composeRan('logs', '--no-color', '--tail', '20');
    await deployment[Symbol.asyncDispose]();
    throw new Error(`the deployment did not come up\n${logs.stdout}`, { cause: error });
  }
}

/** Free now; compose takes it a moment later. */
async function freePort(): Promise<number> {
  const probe = createServer();
  return await new Promise((resolve) => {
    probe.listen(0, '127.0.0.1', () => {
      const address = probe.address();
      const port = typeof address === 'object' && address !== null ? address.port : 0;
      probe.close(() => resolve(port));
    });
  });
}
