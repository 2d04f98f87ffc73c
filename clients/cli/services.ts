/**
 * The services of one deployment on this machine, kept alive by the `up` that holds its state folder.
 *
 * Authority first, as data asks it; drained the other way round, so that data still can.
 */
import { readFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { RefusedError } from '#client/call-errors.js';
import type { Facts } from '#kernel/refusal.js';
import { ensureIdentities, LOCAL_NODE } from './deployment-identities.js';
import { tryLock } from './folder-lock.js';
import { serves } from './health.js';
import type { Endpoints, StateFolder } from './state-folder.js';
import { type ServiceEvents, SupervisedService } from './supervised-service.js';

export interface ServicesOptions {
  /** Progress, for people. */
  note(text: string): void;
  /** How hints travel between the services: `direct`, or `nats://host:port`. */
  readonly bus?: string;
}

/** Taken when they are free, so that a restarted deployment is where it was. */
export const PREFERRED_PORTS = { authority: 7411, data: 7412 } as const;

/** How long data and authority may take to meet, milliseconds: they are on one machine. */
const MEET_MS = 5_000;

/** How long a service whose `up` was killed may take to drain. */
const LEFT_BEHIND_MS = 15_000;

export class Services {
  readonly endpoints: Endpoints;
  /** Resolves when a service cannot be kept alive. */
  readonly gaveUp: Promise<Error>;
  readonly #state: StateFolder;
  readonly #lock: Disposable;
  readonly #authority: SupervisedService;
  readonly #data: SupervisedService;

  private constructor(
    state: StateFolder,
    lock: Disposable,
    authority: SupervisedService,
    data: SupervisedService,
  ) {
    this.#state = state;
    this.#lock = lock;
    this.#authority = authority;
    this.#data = data;
    this.endpoints = { authority: authority.endpoint, data: { [LOCAL_NODE]: data.endpoint } };
    this.gaveUp = Promise.race([authority.gaveUp, data.gaveUp]);
  }

  /**
   * Returns when both are ready. Throws a `RefusedError` (`store-in-use` while another `up` holds the
   * folder) or an `UnreachableError`.
   */
  static async start(state: StateFolder, options: ServicesOptions): Promise<Services> {
    const { note } = options;
    state.make();
    const lock = tryLock(state.path('up.lock'));
    if (lock === undefined) {
      throw new RefusedError({ reason: 'STORE_IN_USE', facts: holderOf(state) });
    }
    try {
      await endLeftBehind(state, note);
      if (await ensureIdentities(state, Date.now())) {
        note(`made a development root and its identities in ${state.dir}`);
      }
      return await Services.#launch(state, lock, options);
    } catch (error) {
      lock[Symbol.dispose]();
      throw error;
    }
  }

  static async #launch(
    state: StateFolder,
    lock: Disposable,
    { note, bus = 'direct' }: ServicesOptions,
  ): Promise<Services> {
    const before = state.endpoints();
    const pids: Record<string, number> = {};
    const eventsOf = (name: string): ServiceEvents => ({
      note,
      // Who to ask, and what to end should this process be killed.
      started: (pid) => {
        pids[name] = pid;
        state.writeUp({ pid: process.pid, services: pids });
      },
    });
    note('starting authority …');
    const authority = await startAuthority(state, before, bus, eventsOf('authority'));
    try {
      note('starting data …');
      const data = await startData(state, before, authority.endpoint, eventsOf('data'));
      await awaitAuthorityAt(data.endpoint, state, note);
      const services = new Services(state, lock, authority, data);
      state.writeEndpoints(services.endpoints);
      return services;
    } catch (error) {
      await authority.drain();
      throw error;
    }
  }

  /** Ends everything politely: data first, then authority. */
  async drain(): Promise<void> {
    await this.#data.drain();
    await this.#authority.drain();
    this.#state.forgetUp();
    this.#lock[Symbol.dispose]();
  }
}

/** As far as whoever holds the folder has said. */
function holderOf(state: StateFolder): Facts {
  const { pid } = state.up() ?? {};
  const { authority, data } = state.endpoints() ?? {};
  return {
    store: state.dir,
    ...(pid === undefined ? {} : { up: String(pid) }),
    ...(authority === undefined ? {} : { authority, data: data?.[LOCAL_NODE] ?? '' }),
  };
}

/** Whether an `up` holds the folder now. */
export function isUp(state: StateFolder): boolean {
  if (!state.exists) {
    return false;
  }
  const lock = tryLock(state.path('up.lock'));
  lock?.[Symbol.dispose]();
  return lock === undefined;
}

/** Services whose `up` was killed and that go on without it; those of a living `up` as well. */
export function leftBehind(state: StateFolder): readonly number[] {
  return Object.values(state.up()?.services ?? {}).filter((pid) => isOurs(pid, state));
}

/** Ends services whose `up` was killed: they would hold their stores and ports. */
export async function endLeftBehind(
  state: StateFolder,
  note: (text: string) => void,
): Promise<void> {
  const left = leftBehind(state);
  if (left.length > 0) {
    note('ending services that an earlier, killed `up` left behind …');
  }
  for (const pid of left.toReversed()) {
    await endProcess(pid, state);
  }
  state.forgetUp();
}

async function endProcess(pid: number, state: StateFolder): Promise<void> {
  signal(pid, 'SIGTERM');
  const deadline = performance.now() + LEFT_BEHIND_MS;
  while (isOurs(pid, state)) {
    if (performance.now() > deadline) {
      signal(pid, 'SIGKILL');
    }
    await sleep(50);
  }
}

function signal(pid: number, name: NodeJS.Signals): void {
  try {
    process.kill(pid, name);
  } catch {
    // It has ended since we looked.
  }
}

/** A number may be another process's by now: ours has this folder in its environment. */
function isOurs(pid: number, state: StateFolder): boolean {
  try {
    return readFileSync(`/proc/${pid}/environ`, 'latin1')
      .split('\0')
      .includes(`WHEELHOUSE_STATE=${state.dir}`);
  } catch {
    // It is gone, another user's, or this system does not say: then it is not ours to end.
    return false;
  }
}

async function startAuthority(
  state: StateFolder,
  before: Endpoints | undefined,
  bus: string,
  events: ServiceEvents,
): Promise<SupervisedService> {
  const spec = {
    name: 'authority',
    args: [compiled('services/authority/main.js')],
    env: { WHEELHOUSE_STATE: state.dir, WHEELHOUSE_BUS: bus, ...development() },
    preferredPort: await freePort(before?.authority, PREFERRED_PORTS.authority),
    ...placesOf(state, 'authority'),
  };
  return await SupervisedService.start(spec, events);
}

async function startData(
  state: StateFolder,
  before: Endpoints | undefined,
  authority: string,
  events: ServiceEvents,
): Promise<SupervisedService> {
  const spec = {
    name: `data.${LOCAL_NODE}`,
    args: [compiled('services/data/reaper.js'), '--', compiled('services/data/main.js')],
    env: {
      WHEELHOUSE_STATE: state.dir,
      WHEELHOUSE_NODE: LOCAL_NODE,
      WHEELHOUSE_AUTHORITY: authority,
      ...development(),
    },
    preferredPort: await freePort(before?.data[LOCAL_NODE], PREFERRED_PORTS.data),
    ...placesOf(state, 'data'),
  };
  return await SupervisedService.start(spec, events);
}

/** Ready means that a look or a run is not refused because the two have not met yet. */
async function awaitAuthorityAt(
  endpoint: string,
  state: StateFolder,
  note: (text: string) => void,
): Promise<void> {
  const identity = state.identity({ role: 'service', name: `data.${LOCAL_NODE}` });
  const asked = identity && { endpoint, identity, plane: 'data' as const };
  if (asked !== undefined && !(await serves(asked, MEET_MS))) {
    note('data has no answer from authority yet; status tells when it has');
  }
}

/** What a deployment leaves off, unless the environment of `up` says otherwise. */
function development(): Record<string, string> {
  return { WHEELHOUSE_REFLECTION: process.env['WHEELHOUSE_REFLECTION'] ?? '1' };
}

function placesOf(state: StateFolder, service: string): { cwd: string; logFile: string } {
  const log = state.path('log');
  state.makeFolder(log);
  return { cwd: state.dir, logFile: state.path('log', `${service}.log`) };
}

function compiled(path: string): string {
  return fileURLToPath(new URL(`../../${path}`, import.meta.url));
}

/** The port of before, else the preferred one, else 0: whichever nobody listens on. */
async function freePort(before: string | undefined, preferred: number): Promise<number> {
  for (const port of [Number(before?.split(':').at(-1) ?? 0), preferred]) {
    if (port > 0 && (await isFree(port))) {
      return port;
    }
  }
  return 0;
}

export function isFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const probe = createServer();
    probe.once('error', () => resolve(false));
    probe.listen(port, '127.0.0.1', () => probe.close(() => resolve(true)));
  });
}
