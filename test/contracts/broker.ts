/** A real broker with deploy/nats.conf, on a free port of loopback, that can be killed, paused and come back. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { connect, type NatsConnection, nkeyAuthenticator } from 'nats';
import { busSeedPath, ensureBusSeed, readBusSeed, writeBusUsers } from '#chassis/bus-keys.js';
import { type BusService, busServices } from '#chassis/bus-users.js';
import { eventually } from '../stack/eventually.js';

const configuration = fileURLToPath(new URL('../../deploy/nats.conf', import.meta.url));

export class Broker implements AsyncDisposable {
  /** A state folder: every service's seed is in it. */
  readonly stateDir: string;
  readonly port: number;
  readonly #binary: string;
  readonly #usersPath: string;
  #process: ChildProcess | undefined;
  #log = '';

  private constructor(binary: string, port: number, more: string) {
    this.stateDir = mkdtempSync(join(tmpdir(), 'wh-broker-'));
    this.#binary = binary;
    this.port = port;
    this.#usersPath = join(this.stateDir, 'users', 'users.conf');
    const text = readFileSync(configuration, 'utf8');
    writeFileSync(join(this.stateDir, 'nats.conf'), `${text}\n${more}\n`);
    this.#writeUsers();
  }

  /** Has its keys and its port, and does not run yet. `more` is added to its configuration. */
  static async prepared(binary: string, more = ''): Promise<Broker> {
    return new Broker(binary, await freePort(), more);
  }

  static async started(binary: string, more = ''): Promise<Broker> {
    const broker = await Broker.prepared(binary, more);
    await broker.start();
    return broker;
  }

  get address(): string {
    return `nats://127.0.0.1:${this.port}`;
  }

  get log(): string {
    return this.#log;
  }

  seedPath(service: BusService | 'admin'): string {
    return service === 'admin'
      ? join(this.stateDir, 'admin.seed')
      : busSeedPath(this.stateDir, service);
  }

  /** Empty, whatever it was before: it keeps nothing. */
  async start(): Promise<void> {
    const args = ['-c', 'nats.conf', '-a', '127.0.0.1', '-p', String(this.port), '-m', '-1'];
    this.#process = spawn(this.#binary, args, {
      cwd: this.stateDir,
      stdio: ['ignore', 'ignore', 'pipe'],
    });
    this.#process.stderr?.setEncoding('utf8').on('data', (text: string) => {
      this.#log += text;
    });
    await eventually('the broker answers', async () => {
      await (await this.connect('admin')).close();
      return true;
    });
  }

  async kill(): Promise<void> {
    const process = this.#process;
    if (process?.exitCode === null && process.signalCode === null) {
      const ended = once(process, 'exit');
      process.kill('SIGKILL');
      await ended;
    }
  }

  pause(): void {
    this.#process?.kill('SIGSTOP');
  }

  resume(): void {
    this.#process?.kill('SIGCONT');
  }

  /** A bare client, as whoever holds a seed could write one. */
  async connect(service: BusService | 'admin'): Promise<NatsConnection> {
    return await connect({
      servers: this.address,
      reconnect: false,
      timeout: 5_000,
      authenticator: nkeyAuthenticator(readBusSeed(this.seedPath(service))),
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.kill();
    rmSync(this.stateDir, { recursive: true });
  }

  /** The product's list, and one user of the tests' own who hears and says everything. */
  #writeUsers(): void {
    const keys = busServices.map((service) => ({
      service,
      publicKey: ensureBusSeed(this.seedPath(service)),
    }));
    writeBusUsers(this.#usersPath, keys);
    const admin = ensureBusSeed(this.seedPath('admin'));
    const all = `{ nkey: ${admin}, permissions: { publish: ">", subscribe: ">" } }`;
    const text = readFileSync(this.#usersPath, 'utf8');
    writeFileSync(this.#usersPath, text.replace('users = [', `users = [\n    ${all}`));
  }
}

export async function freePort(): Promise<number> {
  const probe = createServer().listen(0, '127.0.0.1');
  await once(probe, 'listening');
  const address = probe.address();
  probe.close();
  return typeof address === 'object' && address !== null ? address.port : 0;
}
