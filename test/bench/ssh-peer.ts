/** An sshd of the bench's own on loopback, with keys made for it, and `ssh -tt` to it. */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { copyFileSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir, userInfo } from 'node:os';
import { join } from 'node:path';
import { eventually } from '../stack/eventually.js';
import { locate } from '../stack/machine.js';

export class SshPeer implements AsyncDisposable {
  readonly #folder: string;
  readonly #port: number;
  readonly #server: ChildProcess;

  private constructor(folder: string, port: number, server: ChildProcess) {
    this.#folder = folder;
    this.#port = port;
    this.#server = server;
  }

  /** Undefined, with the reason said, where there is no sshd or it does not let us in. */
  static async start(say: (line: string) => void): Promise<SshPeer | undefined> {
    const sshd = locate('sshd');
    if (sshd === undefined || locate('ssh') === undefined) {
      say('no sshd on this machine: rows that name ssh are without it');
      return undefined;
    }
    const folder = mkdtempSync(join(tmpdir(), 'wh-sshd-'));
    const port = await freePort();
    const config = configure(folder, port);
    const server = spawn(sshd, ['-D', '-e', '-f', config], { stdio: ['ignore', 'ignore', 'pipe'] });
    let complaints = '';
    server.stderr?.setEncoding('utf8').on('data', (text) => {
      complaints += text;
    });
    const peer = new SshPeer(folder, port, server);
    try {
      await eventually('ssh lets us in', () => peer.#answers());
      return peer;
    } catch {
      say(`sshd does not let us in, so rows that name ssh are without it: ${complaints.trim()}`);
      await peer[Symbol.asyncDispose]();
      return undefined;
    }
  }

  /** Runs a shell command in a terminal there. */
  run(command: string): ChildProcess {
    return spawn('ssh', [...this.#arguments(), '-tt', '127.0.0.1', command], {
      stdio: ['pipe', 'pipe', 'ignore'],
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#server.exitCode === null) {
      this.#server.kill('SIGTERM');
      await once(this.#server, 'exit');
    }
    rmSync(this.#folder, { recursive: true, force: true });
  }

  #answers(): boolean {
    try {
      execFileSync('ssh', [...this.#arguments(), '127.0.0.1', 'true'], { stdio: 'ignore' });
      return true;
    } catch {
      return false;
    }
  }

  #arguments(): readonly string[] {
    const options = ['StrictHostKeyChecking=no', 'UserKnownHostsFile=/dev/null', 'LogLevel=ERROR'];
    return [
      '-F',
      'none',
      '-i',
      join(this.#folder, 'client'),
      '-p',
      String(this.#port),
      '-l',
      userInfo().username,
      ...[...options, 'BatchMode=yes', 'IdentitiesOnly=yes'].flatMap((option) => ['-o', option]),
    ];
  }
}

function configure(folder: string, port: number): string {
  for (const name of ['host', 'client']) {
    const path = join(folder, name);
    execFileSync('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-f', path]);
  }
  copyFileSync(join(folder, 'client.pub'), join(folder, 'authorized'));
  if (process.getuid?.() === 0) {
    mkdirSync('/run/sshd', { recursive: true, mode: 0o755 });
  }
  const config = join(folder, 'config');
  const lines = [
    `Port ${port}`,
    'ListenAddress 127.0.0.1',
    `HostKey ${join(folder, 'host')}`,
    `AuthorizedKeysFile ${join(folder, 'authorized')}`,
    `PidFile ${join(folder, 'pid')}`,
    'StrictModes no',
    'UsePAM no',
    'PasswordAuthentication no',
    'PermitRootLogin yes',
    'UseDNS no',
    'PrintMotd no',
  ];
  writeFileSync(config, `${lines.join('\n')}\n`);
  return config;
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  server.close();
  await once(server, 'close');
  return typeof address === 'object' && address !== null ? address.port : 0;
}
