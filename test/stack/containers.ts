/** The stack as containers, as the compose file deploys them, on ports of loopback. */
import { chmodSync, chownSync, mkdirSync } from 'node:fs';
import { createServer } from 'node:net';
import { basename, dirname } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import type { ContainerCreateOptions } from 'dockerode';
import { inject } from 'vitest';
import { identityPaths, rootPaths } from '#chassis/identity-files.js';
import { announceEndpoints } from './announce.js';
import { STACK_VARIABLE } from './census.js';
import { ContainerService } from './container-service.js';
import { type Deployment, RUN_LABEL } from './containers-setup.js';
import { engine } from './engine.js';
import { HousedStack } from './housed-stack.js';
import { cutOff, healed } from './network-cut.js';
import { type Party, type Plane, planes, type Stack, type StackOptions } from './stack.js';
import { NODE_NAME, ownDist, StackHome } from './stack-home.js';

/** Starts authority, then data. */
export async function startContainers(options: StackOptions = {}): Promise<Stack> {
  const deployment = inject('deployment');
  if (typeof deployment === 'string') {
    throw new Error(deployment);
  }
  const stack = new ContainerStack(await StackHome.make(options), options, deployment);
  try {
    await stack.begin();
    return stack;
  } catch (error) {
    await stack[Symbol.asyncDispose]().catch(() => undefined);
    throw error;
  }
}

/** Of the image (deploy/Dockerfile). */
const SERVICE_UID = 10_000;
const PROGRAM_UID = 10_001;
const STATE = '/var/lib/wheelhouse';
const DIST = '/srv/wheelhouse/dist';
const PORTS = { authority: 7411, data: 7412 } as const;
/** An init is above every service, and a reaper above data. */
const ABOVE = { authority: 1, data: 2 } as const;

class ContainerStack extends HousedStack implements Stack {
  readonly depth = 'containers';
  readonly endpoints = { authority: '', data: '' };
  readonly #options: StackOptions;
  readonly #deployment: Deployment;
  readonly #services = new Map<Plane, ContainerService>();
  readonly #pids = new Map<Plane, number>();

  constructor(home: StackHome, options: StackOptions, deployment: Deployment) {
    super(home);
    this.#options = options;
    this.#deployment = deployment;
  }

  override get programDir(): string {
    return DIST;
  }

  async begin(): Promise<void> {
    this.#handOver();
    for (const plane of planes) {
      this.endpoints[plane] = `127.0.0.1:${await freePort()}`;
    }
    for (const plane of planes) {
      await this.restart(plane);
    }
    announceEndpoints(this.stateDir, this.endpoints);
    await this.joined();
  }

  async crash(plane: Plane): Promise<void> {
    await this.#service(plane).crash();
  }

  async drain(plane: Plane): Promise<void> {
    await this.#service(plane).end();
  }

  async restart(plane: Plane): Promise<void> {
    this.home.starts();
    const service = await this.#made(plane);
    await service.start();
    this.#pids.set(plane, await service.pid());
  }

  /** The same container again, unless what it is started with has changed since it was made. */
  async #made(plane: Plane): Promise<ContainerService> {
    const spec = this.#spec(plane);
    const before = this.#services.get(plane);
    if (before !== undefined && isDeepStrictEqual(before.options, spec)) {
      return before;
    }
    await before?.remove();
    const log = (text: string): void => this.home.hears(plane, text);
    const service = await ContainerService.make(await engine(), spec, log, ABOVE[plane]);
    this.#services.set(plane, service);
    return service;
  }

  async pause(plane: Plane): Promise<void> {
    await this.#service(plane).pause();
  }

  async resume(plane: Plane): Promise<void> {
    await this.#service(plane).resume();
  }

  async cut(one: Party, other: Party): Promise<void> {
    const { inside, outside } = await this.#between(one, other);
    cutOff(inside, outside);
  }

  async heal(one: Party, other: Party): Promise<void> {
    const { inside, outside } = await this.#between(one, other);
    healed(inside, outside);
  }

  lives(plane: Plane): boolean {
    return this.#service(plane).lives;
  }

  pid(plane: Plane): number {
    const pid = this.#pids.get(plane);
    if (pid === undefined || !this.lives(plane)) {
      throw new Error(`${plane} has ended`);
    }
    return pid;
  }

  /** Data first: it tells authority what it ends. */
  async [Symbol.asyncDispose](): Promise<void> {
    const failures: unknown[] = [];
    for (const plane of [...planes].reverse()) {
      const service = this.#services.get(plane);
      await service?.resume().catch(() => undefined);
      await service?.end().catch((error: unknown) => failures.push(error));
      await service?.remove();
    }
    await this.home.leave();
    if (failures.length > 0) {
      throw failures[0];
    }
  }

  #service(plane: Plane): ContainerService {
    const service = this.#services.get(plane);
    if (service === undefined) {
      throw new Error(`${plane} was never started`);
    }
    return service;
  }

  /** What each service's user may read and write, as the identity job leaves it. */
  #handOver(): void {
    const { stateDir, workspace } = this;
    const { certificate, key } = identityPaths(stateDir, 'service', 'authority');
    const root = rootPaths(stateDir);
    const journal = this.home.storeDir;
    mkdirSync(journal, { recursive: true, mode: 0o700 });
    for (const path of [journal, certificate, key, root.key]) {
      chownSync(path, SERVICE_UID, SERVICE_UID);
    }
    chownSync(workspace, PROGRAM_UID, PROGRAM_UID);
    for (const path of [stateDir, dirname(root.key), dirname(key), dirname(dirname(key))]) {
      chmodSync(path, 0o755);
    }
    chmodSync(root.certificate, 0o644);
  }

  #spec(plane: Plane): ContainerCreateOptions {
    const { templates, network, run } = this.#deployment;
    const template = templates[plane];
    const port = `${PORTS[plane]}/tcp`;
    const [, hostPort = ''] = this.endpoints[plane].split(':');
    return {
      ...template,
      name: this.#name(plane),
      Env: [...(template.Env ?? []), ...entriesOf(this.#environment(plane))],
      Labels: { [RUN_LABEL]: run },
      ExposedPorts: { [port]: {} },
      Healthcheck: { Test: ['NONE'] },
      HostConfig: {
        ...template.HostConfig,
        Binds: this.#binds(plane),
        PortBindings: { [port]: [{ HostIp: '127.0.0.1', HostPort: hostPort }] },
        NetworkMode: network,
        RestartPolicy: { Name: 'no' },
      },
      NetworkingConfig: { EndpointsConfig: { [network]: {} } },
    };
  }

  #name(plane: Plane): string {
    return `${basename(this.home.folder)}-${plane}`;
  }

  #binds(plane: Plane): string[] {
    const { stateDir, workspace } = this;
    const { distDir, clocks } = this.home;
    const read = (clocks === undefined ? [] : [clocks.folder, clocks.library]).map(
      (path) => `${path}:${path}:ro`,
    );
    return [
      ...read,
      `${stateDir}:${STATE}${plane === 'data' ? ':ro' : ''}`,
      ...(plane === 'data' ? [`${workspace}:${workspace}`] : []),
      // The product is what the image holds; a mutant takes its place.
      ...(distDir === ownDist ? [] : [`${distDir}:${DIST}:ro`]),
    ];
  }

  #environment(plane: Plane): Record<string, string> {
    const data = {
      WHEELHOUSE_NODE: NODE_NAME,
      WHEELHOUSE_AUTHORITY: `${this.#name('authority')}:${PORTS.authority}`,
      WHEELHOUSE_ADVERTISE: this.endpoints.data,
    };
    return {
      [STACK_VARIABLE]: this.home.folder,
      WHEELHOUSE_BUS: 'direct',
      WHEELHOUSE_LOG_LEVEL: 'debug',
      ...(plane === 'data' ? data : {}),
      ...this.home.clocks?.environment(plane),
      ...this.#options.settings?.[plane],
    };
  }

  /** Where a cut is made: in the namespace of a plane, against the address of the other party. */
  async #between(one: Party, other: Party): Promise<{ inside: number; outside: string }> {
    const { network } = this.#deployment;
    const [inner, outer] = one === 'client' ? [other, one] : [one, other];
    if (inner === 'client') {
      throw new Error('a client is not cut off from itself');
    }
    const { pid, gateway } = await this.#service(inner).place(network);
    const outside =
      outer === 'client' ? gateway : (await this.#service(outer).place(network)).address;
    return { inside: pid, outside };
  }
}

function entriesOf(environment: Readonly<Record<string, string>>): string[] {
  return Object.entries(environment).map(([name, value]) => `${name}=${value}`);
}

/** Below those that the kernel gives to whoever dials, so that it stays free while a container is down. */
async function freePort(): Promise<number> {
  const port = 20_000 + Math.floor(Math.random() * 12_000);
  const probe = createServer();
  const isFree = await new Promise<boolean>((resolve) => {
    probe.once('error', () => resolve(false));
    probe.listen(port, '127.0.0.1', () => probe.close(() => resolve(true)));
  });
  return isFree ? port : await freePort();
}
