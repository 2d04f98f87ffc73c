/**
 * What the data plane counts on from its terminals, proved on real ones.
 *
 * Runs the compiled output: the reader thread is a file of its own.
 */
import { type ChildProcess, spawn as spawnProcess } from 'node:child_process';
import { createHash, randomBytes, randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest';
import type { Exit, Terminal, TerminalHost } from '../../services/data/domain/terminal.js';

const compiled = new URL('../../dist/services/data/', import.meta.url);
const hostModule = new URL('adapters/terminal-host.js', compiled).href;
const reaperFile = fileURLToPath(new URL('reaper.js', compiled));

const { startTerminalHost } = (await import(
  hostModule
)) as typeof import('../../services/data/adapters/terminal-host.js');
const { nativeFork } = (await import(
  new URL('adapters/native-fork.js', compiled).href
)) as typeof import('../../services/data/adapters/native-fork.js');
const { childEnvironment } = (await import(
  new URL('adapters/child-environment.js', compiled).href
)) as typeof import('../../services/data/adapters/child-environment.js');

vi.setConfig({ testTimeout: 120_000, hookTimeout: 60_000 });

/** How long anything may take that depends on other processes: only a broken promise needs this long. */
const deadlineMs = 30_000;
/** In the environment of every program, so that those left behind are found wherever they went. */
const marker = `TERMINAL_HOST_TEST=${randomUUID()}`;

let folder: string;
let host: TerminalHost;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'terminal-host-'));
});
beforeEach(() => {
  host = startTerminalHost();
});
afterEach(async () => {
  await host[Symbol.asyncDispose]();
  for (const pid of markedProcesses()) {
    process.kill(pid, 'SIGKILL');
  }
});
afterAll(async () => {
  await rm(folder, { recursive: true });
});

interface Ended {
  readonly output: Buffer;
  readonly exit: Exit;
}

/** A program in a terminal, with everything it wrote so far. */
interface Run {
  readonly terminal: Terminal;
  /** Resolves with the whole output when END is known. */
  ended(): Promise<Ended>;
  output(): Buffer;
  /** Resolves when the output holds this. */
  shows(text: string): Promise<void>;
  /** Hands over all of it, waiting whenever the terminal takes no more. Returns what each write took. */
  type(bytes: Uint8Array): Promise<readonly number[]>;
}

interface Program {
  readonly file?: string;
  readonly args?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  readonly on?: TerminalHost;
}

/** Runs a line of shell, draining what it writes at once. */
function run(script: string, program: Program = {}): Run {
  const chunks: Buffer[] = [];
  const waiting = new Set<() => void>();
  const buffer = new Uint8Array(64 * 1024);
  let writable = (): void => undefined;
  let end = (_: Ended): void => undefined;
  const ending = new Promise<Ended>((resolve) => {
    end = resolve;
  });
  const output = () => Buffer.concat(chunks);

  const terminal = start(script, program, {
    onProgress: () => {
      for (;;) {
        const count = terminal.copyOut(terminal.releasedSeq, buffer);
        if (count === 0) {
          break;
        }
        chunks.push(Buffer.from(buffer.subarray(0, count)));
        terminal.release(terminal.releasedSeq + BigInt(count));
      }
      for (const look of waiting) {
        look();
      }
      if (terminal.end !== undefined) {
        end({ output: output(), exit: terminal.end });
      }
    },
    onWritable: () => writable(),
  });
  return {
    terminal,
    output,
    ended: () => within(`the end of ${script}`, ending),
    shows: (text) =>
      within(
        `${text} from ${script}`,
        new Promise((resolve) => {
          const look = () => {
            if (output().includes(text)) {
              waiting.delete(look);
              resolve();
            }
          };
          waiting.add(look);
          look();
        }),
      ),
    type: async (bytes) => {
      const taken: number[] = [];
      for (let from = 0; from < bytes.length; ) {
        const ready = new Promise<void>((resolve) => {
          writable = resolve;
        });
        const count = terminal.write(bytes.subarray(from));
        taken.push(count);
        from += count;
        if (from < bytes.length) {
          await within('a terminal that takes input', ready);
        }
      }
      return taken;
    },
  };
}

/** Starts a program whose output nobody touches but the caller. */
function start(
  script: string,
  program: Program = {},
  events = { onProgress: (): void => undefined, onWritable: (): void => undefined },
): Terminal {
  const [name, value] = marker.split('=') as [string, string];
  const { PATH = '/usr/bin:/bin' } = process.env;
  return (program.on ?? host).spawn(
    {
      file: program.file ?? '/bin/sh',
      args: program.args ?? ['-c', script],
      env: { PATH, [name]: value, ...program.env },
      cwd: folder,
      geometry: { rows: 24, cols: 80 },
    },
    events,
  );
}

async function within<Value>(what: string, promised: Promise<Value>): Promise<Value> {
  const abort = new AbortController();
  const late = delay(deadlineMs, undefined, { signal: abort.signal }).then(() => {
    throw new Error(`no sign of ${what} after ${deadlineMs} ms`);
  });
  late.catch(() => undefined);
  try {
    return await Promise.race([promised, late]);
  } finally {
    abort.abort();
  }
}

/** For what no event tells: looks until it is so. */
async function eventually(what: string, isSo: () => boolean): Promise<void> {
  for (const until = performance.now() + deadlineMs; !isSo(); await delay(5)) {
    if (performance.now() > until) {
      throw new Error(`${what}: not after ${deadlineMs} ms`);
    }
  }
}

/** Processes that run with this test's marker in their environment. Those that have ended have none. */
function markedProcesses(mark = marker): number[] {
  return readdirSync('/proc').flatMap((name) => {
    try {
      return Number(name) > 0 && readFileSync(`/proc/${name}/environ`).includes(mark)
        ? [Number(name)]
        : [];
    } catch {
      return [];
    }
  });
}

/** Whether it runs: one that only waits to be waited for does not. */
function isRunning(pid: number): boolean {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1');
    return !stat.slice(stat.lastIndexOf(')')).startsWith(') Z');
  } catch {
    return false;
  }
}

function openDescriptors(): readonly string[] {
  return readdirSync('/proc/self/fd').flatMap((fd) => {
    try {
      return [readlinkSync(`/proc/self/fd/${fd}`)];
    } catch {
      return []; // the one that lists them
    }
  });
}

function terminalDescriptors(): readonly string[] {
  return openDescriptors().filter((link) => /^\/dev\/(ptmx|pts\/)/.test(link));
}

const sha256 = (bytes: Uint8Array): string => createHash('sha256').update(bytes).digest('hex');

async function writtenFile(bytes: Uint8Array): Promise<string> {
  const path = join(folder, randomUUID());
  await writeFile(path, bytes);
  return path;
}

describe('the last byte of a fast program (case C001)', () => {
  const bytes = randomBytes(100_000);

  test('50 programs that print 100,000 bytes and exit at once lose none', async () => {
    const path = await writtenFile(bytes);
    for (let count = 0; count < 50; count += 1) {
      const program = run(`stty -opost; exec cat ${path}`);
      const { output, exit } = await program.ended();
      expect(exit).toEqual({ kind: 'code', code: 0 });
      expect(sha256(output)).toBe(sha256(bytes));
      expect(program.terminal.producedSeq).toBe(100_000n);
      await program.terminal.hangUp();
    }
  });

  test('none is lost when a background process holds the terminal', async () => {
    const path = await writtenFile(bytes);
    for (let count = 0; count < 5; count += 1) {
      const program = run(`stty -opost; sleep 1000 & exec cat ${path}`);
      const { output } = await program.ended();
      expect(sha256(output)).toBe(sha256(bytes));
    }
  });

  test('none is lost when the ring is full at the exit, and END waits for room', async () => {
    // More than the ring holds, by less than what the kernel keeps: so the program can leave.
    const more = bytes.subarray(0, 68 * 1024);
    const path = await writtenFile(more);
    await using small = startTerminalHost({ ringBytes: 64 * 1024 });
    for (let count = 0; count < 50; count += 1) {
      const terminal = start(`stty -opost; exec cat ${path}`, { on: small });
      await eventually('the program has left', () => !isRunning(terminal.pid));
      await eventually('the ring is full', () => terminal.isFull);
      expect(terminal.end).toBeUndefined();
      expect(terminal.producedSeq).toBe(65_536n);

      const output = new Uint8Array(more.length);
      const first = terminal.copyOut(0n, output);
      terminal.release(BigInt(first));
      await eventually('END is known', () => terminal.end !== undefined);
      terminal.copyOut(BigInt(first), output.subarray(first));
      expect(terminal.producedSeq).toBe(BigInt(more.length));
      expect(sha256(output)).toBe(sha256(more));
    }
  });

  test('END comes although what the program left behind writes for ever (law B7)', async () => {
    const program = run('stty -opost; while :; do echo noise; done & echo last words');
    const { output } = await program.ended();
    expect(output.toString()).toContain('last words');
    const { producedSeq } = program.terminal;
    await program.terminal.hangUp();
    expect(program.terminal.producedSeq).toBe(producedSeq);
  });

  test('END stands at most the drain behind what was read at the reap (law B7)', async () => {
    let onReaped = (): void => undefined;
    const reaped = new Promise<void>((resolve) => {
      onReaped = resolve;
    });
    await using small = startTerminalHost({
      ringBytes: 64 * 1024,
      endDrainMax: 4096,
      fork: (program, tell) =>
        nativeFork(program, (exit) => {
          tell(exit);
          onReaped();
        }),
    });
    const terminal = start('cat /dev/zero & read line', { on: small });
    await eventually('the ring is full', () => terminal.isFull);
    terminal.write(Buffer.from('\n'));
    await within('the reap', reaped);
    expect(terminal.end).toBeUndefined();
    terminal.release(terminal.producedSeq);
    await eventually('END is known', () => terminal.end !== undefined);
    expect(terminal.producedSeq).toBeGreaterThan(65_536n);
    expect(terminal.producedSeq).toBeLessThanOrEqual(65_536n + 4_096n);
  });

  test('a program may let go of its terminal and take it again', async () => {
    const program = run(
      'exec </dev/null >/dev/null 2>&1; sleep 0.1; echo back >/dev/tty; exec sleep 1000',
    );
    await program.shows('back');
    expect(program.output().toString()).toBe('back\r\n');
  });
});

describe('how a program ended (case C003)', () => {
  test.each<{ script: string; exit: Exit }>([
    { script: 'exit 0', exit: { kind: 'code', code: 0 } },
    { script: 'exit 7', exit: { kind: 'code', code: 7 } },
    { script: 'kill -9 $$', exit: { kind: 'signal', signal: 9 } },
    { script: 'kill -15 $$', exit: { kind: 'signal', signal: 15 } },
  ])('$script is $exit', async ({ script, exit }) => {
    expect((await run(script).ended()).exit).toEqual(exit);
  });
});

describe('bytes as they are (law B6)', () => {
  const all = Uint8Array.from({ length: 256 }, (_, value) => value);

  test('all 256 values pass in both directions, as does what is no UTF-8', async () => {
    const sent = Buffer.concat([all, Buffer.from('fffe00018041', 'hex'), all]);
    const program = run('stty raw -echo; printf ready; exec cat');
    await program.shows('ready');
    await program.type(sent);
    await eventually('all is back', () => program.output().length >= 5 + sent.length);
    expect(program.output().subarray(5).toString('hex')).toBe(sent.toString('hex'));
  });

  test('flow control keys reach a raw program (case C016)', async () => {
    const program = run('stty raw -echo; printf ready; exec cat');
    await program.shows('ready');
    await program.type(Uint8Array.of(0x13));
    await program.shows('\x13');
    await program.type(Uint8Array.of(0x11));
    await program.shows('\x11');
    expect(program.output().toString()).toBe('ready\x13\x11');
  });

  test('a character written byte by byte stays what it is (case C014)', async () => {
    const program = run('for b in 342 224 202; do printf "\\\\$b"; sleep 0.05; done');
    expect((await program.ended()).output.toString('hex')).toBe('e29482');
  });

  test('1 MB of characters of every length is what was written (case C014)', async () => {
    const text = Buffer.from('é│😀a'.repeat(100_000)).subarray(0, 1_000_001);
    const path = await writtenFile(text);
    const program = run(`stty -opost; exec cat ${path}`);
    expect(sha256((await program.ended()).output)).toBe(sha256(text));
  });

  test('64 KB at once to a program that reads slowly arrive in order (case C006)', async () => {
    const burst = randomBytes(64 * 1024);
    const frames = Array.from({ length: 5 }, () => randomBytes(100));
    const sent = Buffer.concat([burst, ...frames]);
    const script = `
      const { readSync, writeSync } = require('node:fs');
      const { createHash } = require('node:crypto');
      const hash = createHash('sha256');
      const buffer = Buffer.alloc(1024);
      const pause = new Int32Array(new SharedArrayBuffer(4));
      writeSync(1, 'ready');
      for (let left = ${sent.length}; left > 0; ) {
        Atomics.wait(pause, 0, 0, 10);
        const count = readSync(0, buffer);
        hash.update(buffer.subarray(0, count));
        left -= count;
      }
      writeSync(1, hash.digest('hex'));`;
    const args = ['-c', 'stty raw -echo; exec "$0" -e "$1"', process.execPath, script];
    const program = run('', { args });
    await program.shows('ready');
    const taken: number[] = [];
    for (const frame of [burst, ...frames]) {
      taken.push(...(await program.type(frame)));
    }
    expect(taken[0]).toBeLessThan(burst.length);
    expect((await program.ended()).output.toString()).toBe(`ready${sha256(sent)}`);
  });
});

describe('descriptors (case C007)', () => {
  const perWay = 75;

  async function leakNone(open: () => Promise<void>): Promise<void> {
    await open(); // what the first one costs once
    const before = openDescriptors().length;
    const terminals = terminalDescriptors().length;
    for (let left = perWay; left > 0; left -= 25) {
      await Promise.all(Array.from({ length: 25 }, open));
    }
    expect(terminalDescriptors()).toHaveLength(terminals);
    await eventually('the count is back', () => openDescriptors().length <= before);
  }

  test('none is left by programs that leave by themselves', async () => {
    await leakNone(async () => {
      const program = run('echo hello');
      await program.ended();
      await program.terminal.hangUp();
    });
  });

  test('none is left by terminals that are closed', async () => {
    await leakNone(async () => {
      const program = run('echo hello; exec sleep 1000');
      await program.shows('hello');
      await program.terminal.hangUp();
    });
  });

  test('none is left when a step after the fork fails, nor the program', async () => {
    const { dup2, openNull } = await posixOfTheTest();
    let isFailing = false;
    await using failing = startTerminalHost({
      fork: (program, onReaped) => {
        const forked = nativeFork(program, onReaped);
        if (isFailing) {
          // What is at the master's number now is no terminal: opening its slave fails.
          dup2(openNull, forked.master);
        }
        return forked;
      },
    });
    const threads = [run('true'), run('true', { on: failing })]; // both have started
    await Promise.all(threads.map((program) => program.ended()));
    isFailing = true;
    await leakNone(async () => {
      expect(() => start('exec sleep 1000', { on: failing })).toThrow('given up half made');
    });
    await eventually('no program is left', () => markedProcesses().length === 0);
  });

  test('none is left when a descendant that left the session holds the slave', async () => {
    await leakNone(async () => {
      const program = run('setsid sleep 1000 & echo hello');
      await program.ended();
      await program.terminal.hangUp();
    });
    expect(markedProcesses().length).toBeGreaterThan(0);
  });

  test('a program has no descriptor of ours, nor of another terminal', async () => {
    const { dup, openNull } = await posixOfTheTest();
    const inheritable = dup(openNull);
    const other = run('echo hello; exec sleep 1000');
    await other.shows('hello');
    const program = run('for fd in /proc/$$/fd/*; do readlink $fd; done; tty');
    const lines = (await program.ended()).output.toString().trim().split('\r\n');
    const tty = lines.pop();
    expect(inheritable).toBeGreaterThan(2);
    // 0, 1 and 2; a shell may keep the terminal open under one more number.
    expect(lines.length).toBeGreaterThanOrEqual(3);
    expect(new Set(lines)).toEqual(new Set([tty]));
  });
});

describe('sizes', () => {
  test('a size is what was asked for, and the program hears of it', async () => {
    const program = run('trap "stty size; exit" WINCH; echo ready; while :; do sleep 0.05; done');
    await program.shows('ready');
    expect(program.terminal.geometry()).toEqual({ rows: 24, cols: 80 });
    expect(program.terminal.resize({ rows: 33, cols: 65_535 })).toEqual({ rows: 33, cols: 65_535 });
    expect((await program.ended()).output.toString()).toContain('33 65535');
    expect(program.terminal.geometry()).toBeUndefined();
  });

  test('200 programs that leave while they are resized break nothing (case C011)', async () => {
    const race = async (): Promise<void> => {
      const program = run('exit 3');
      let cols = 80;
      const asking = setInterval(() => {
        cols += 1;
        const answer = program.terminal.resize({ rows: 24, cols });
        expect([undefined, { rows: 24, cols }]).toContainEqual(answer);
      }, 1);
      await program.ended();
      expect(program.terminal.resize({ rows: 1, cols: 1 })).toBeUndefined();
      await program.terminal.hangUp();
      expect(program.terminal.resize({ rows: 1, cols: 1 })).toBeUndefined();
      clearInterval(asking);
    };
    for (let left = 200; left > 0; left -= 20) {
      await Promise.all(Array.from({ length: 20 }, race));
    }
  });
});

describe('what a program inherits', () => {
  afterEach(() => {
    vi.unstubAllEnvs();
  });

  test('nothing of the environment of the service (case C017)', async () => {
    for (const name of ['TMUX', 'TMUX_PANE', 'NODE_ENV', 'NATS_URL', 'WHEELHOUSE_KEY', 'TERM']) {
      vi.stubEnv(name, 'canary-51c2');
    }
    const env = childEnvironment({ extra: { ASKED_FOR: 'yes' } });
    const terminal = run('', { file: '/usr/bin/env', args: ['-0'], env });
    const { output } = await terminal.ended();
    const seen = output.toString().split('\0').filter(Boolean);
    expect(seen.map((entry) => entry.split('=')[0]).sort()).toEqual(
      [...'ASKED_FOR HOME LANG PATH SHELL TERM USER'.split(' '), marker.split('=')[0]].sort(),
    );
    expect(seen).toContain('TERM=xterm-256color');
    expect(output.toString()).not.toContain('canary');
  });

  test('no ignored and no blocked signal, and the interrupt key ends it (case C018)', async () => {
    const script = `
      const { startTerminalHost } = await import(${JSON.stringify(hostModule)});
      process.on('SIGINT', () => undefined).on('SIGQUIT', () => undefined);
      const host = startTerminalHost();
      const env = { PATH: process.env.PATH };
      const spec = { env, cwd: '/', geometry: { rows: 24, cols: 80 } };
      let text = '';
      const show = (args) => new Promise((resolve) => {
        const buffer = new Uint8Array(65536);
        const terminal = host.spawn({ file: '/bin/sh', args, ...spec }, {
          onProgress: () => {
            const count = terminal.copyOut(terminal.releasedSeq, buffer);
            terminal.release(terminal.releasedSeq + BigInt(count));
            text += Buffer.from(buffer.subarray(0, count));
            if (text.includes('ready')) { text = ''; terminal.write(Uint8Array.of(3)); }
            if (terminal.end) resolve(terminal.end);
          },
          onWritable: () => undefined,
        });
      });
      const killed = await show(['-c', 'echo ready; exec sleep 1000']);
      text = '';
      await show(['-c', 'exec grep -E "^Sig(Ign|Blk)" /proc/self/status']);
      console.log(JSON.stringify({ killed, masks: text.match(/[0-9a-f]{16}/g) }));
      await host[Symbol.asyncDispose]();`;
    const ignoring = spawnProcess('/bin/sh', [
      '-c',
      'trap "" INT QUIT; exec "$0" --input-type=module -e "$1"',
      process.execPath,
      script,
    ]);
    const zeros = '0'.repeat(16);
    expect(JSON.parse(await outputOf(ignoring))).toEqual({
      killed: { kind: 'signal', signal: 2 },
      masks: [zeros, zeros],
    });
  });

  test.runIf(process.getuid?.() === 0)(
    'another user, its terminal, and no group of ours',
    async () => {
      const script = `
      const { startTerminalHost } = await import(${JSON.stringify(hostModule)});
      process.setgroups([0, 1, 2]);
      const host = startTerminalHost({ runAs: { uid: 65534, gid: 65534 } });
      const buffer = new Uint8Array(65536);
      const terminal = host.spawn(
        {
          file: '/bin/sh',
          args: ['-c', 'echo "$(id -u) $(id -G)"; echo typed > "$(tty)"; cat /etc/shadow'],
          env: { PATH: process.env.PATH }, cwd: '/', geometry: { rows: 24, cols: 80 },
        },
        {
          onProgress: async () => {
            if (terminal.end === undefined) return;
            const count = terminal.copyOut(0n, buffer);
            process.stdout.write(buffer.subarray(0, count));
            await host[Symbol.asyncDispose]();
          },
          onWritable: () => undefined,
        },
      );`;
      const service = spawnProcess(process.execPath, ['--input-type=module', '-e', script]);
      const lines = (await outputOf(service)).split('\r\n');
      expect(lines.slice(0, 2)).toEqual(['65534 65534', 'typed']);
      expect(lines[2]).toContain('Permission denied');
    },
  );
});

describe('a terminal that nobody serves costs and blocks nothing (law B8)', () => {
  test('a full ring stops its own terminal, and no other', async () => {
    const flooding = start('exec cat /dev/zero');
    await eventually('it is full', () => flooding.isFull);
    const produced = flooding.producedSeq;
    const other = run('stty raw -echo; printf ready; exec cat');
    await other.shows('ready');
    await other.type(Buffer.from('still here'));
    await other.shows('still here');
    expect(flooding.producedSeq).toBe(produced);
    expect(flooding.resize({ rows: 10, cols: 10 })).toEqual({ rows: 10, cols: 10 });
    await within('the close', flooding.hangUp());
  });

  test('a program that reads nothing takes what fits, and closes at once', async () => {
    const deaf = run('stty raw -echo; echo ready; exec sleep 1000');
    await deaf.shows('ready');
    const taken = deaf.terminal.write(new Uint8Array(1024 * 1024));
    expect(taken).toBeGreaterThan(0);
    expect(taken).toBeLessThan(1024 * 1024);
    expect(deaf.terminal.write(new Uint8Array(1024 * 1024))).toBeLessThan(64 * 1024);
    expect(deaf.terminal.resize({ rows: 10, cols: 10 })).toEqual({ rows: 10, cols: 10 });
    await within('the close', deaf.terminal.hangUp());
    expect(deaf.terminal.write(Uint8Array.of(1))).toBe(0);
  });

  test('figures: 100 idle terminals, and one whose ring is full', async () => {
    const count = 100;
    await run('true').ended(); // what the first one costs once
    const rssBefore = process.memoryUsage.rss();
    const idle = Array.from({ length: count }, () => run('echo ready; exec sleep 1000'));
    await Promise.all(idle.map((program) => program.shows('ready')));
    const perTerminal = (process.memoryUsage.rss() - rssBefore) / count;
    const idleCpu = await cpuPerSecond();
    const flooding = start('exec cat /dev/zero');
    await eventually('it is full', () => flooding.isFull);
    const fullCpu = await cpuPerSecond();
    process.stdout.write(
      `idle: ${(perTerminal / 1024).toFixed(0)} KiB each, ${idleCpu.toFixed(1)} ms CPU a second; ` +
        `one full: ${fullCpu.toFixed(1)} ms\n`,
    );
    expect(perTerminal).toBeLessThan(1024 * 1024);
  });
});

describe('the end of a terminal', () => {
  test('hanging up ends a running program, once, and tells nothing more', async () => {
    let calls = 0;
    const terminal = start(
      'while :; do echo noise; done',
      {},
      { onProgress: () => (calls += 1), onWritable: () => undefined },
    );
    await eventually('it is heard', () => calls > 0);
    const closing = terminal.hangUp();
    const heard = calls;
    expect(terminal.hangUp()).toBe(closing);
    await within('the close', closing);
    expect(calls).toBe(heard);
    expect(terminal.end).toBeUndefined();
    expect(terminal.write(Uint8Array.of(3))).toBe(0);
    expect(isRunning(terminal.pid)).toBe(false);
  });

  test('what ignores the hang-up is killed, in the background too', async () => {
    const program = run('trap "" HUP; sleep 1000 & echo ready; sleep 1000');
    await program.shows('ready');
    await within('the close', program.terminal.hangUp());
    expect(markedProcesses()).toEqual([]);
  });

  test('what a program that has ended left in its session is killed', async () => {
    const program = run('trap "" HUP; sleep 1000 & echo bye');
    await program.ended();
    expect(markedProcesses()).toHaveLength(1);
    await within('the close', program.terminal.hangUp());
    expect(markedProcesses()).toEqual([]);
  });

  test('disposing the host hangs up every terminal, and takes no more', async () => {
    const closing = startTerminalHost();
    for (let count = 0; count < 10; count += 1) {
      start('exec sleep 1000', { on: closing });
    }
    await within('the close', closing[Symbol.asyncDispose]());
    expect(markedProcesses()).toEqual([]);
    expect(() => start('true', { on: closing })).toThrow('closing');
  });

  test('a process with living terminals can exit', async () => {
    const script = `
      const { startTerminalHost } = await import(${JSON.stringify(hostModule)});
      const events = { onProgress: () => process.exit(5), onWritable: () => undefined };
      startTerminalHost().spawn({
        file: '/bin/sh', args: ['-c', 'echo ready; exec sleep 1000'],
        env: ${JSON.stringify(Object.fromEntries([marker.split('=')]))},
        cwd: '/', geometry: { rows: 24, cols: 80 },
      }, events);`;
    const service = spawnProcess(process.execPath, ['--input-type=module', '-e', script]);
    expect(await within('the exit', once(service, 'exit'))).toEqual([5, null]);
    await eventually('the hang-up has ended it', () => markedProcesses().length === 0);
  });

  test('a NUL in what is to run is refused before the fork', () => {
    expect(() => start('true', { args: ['-c', 'true\0false'] })).toThrow('NUL');
  });

  test('positions outside what is kept are a bug', async () => {
    const program = run('echo hello');
    await program.ended();
    const target = new Uint8Array(1);
    expect(() => program.terminal.copyOut(0n, target)).toThrow('position 0');
    expect(() => program.terminal.copyOut(100n, target)).toThrow('position 100');
    expect(() => program.terminal.release(100n)).toThrow('position 100');
    program.terminal.release(1n);
    expect(program.terminal.releasedSeq).toBe(7n);
  });
});

describe('the reaper', () => {
  /** A stand-in for the data service: terminals with what is hardest to end. */
  function startUnderReaper(script: string): ChildProcess {
    return spawnProcess(process.execPath, [reaperFile, '--', '--input-type=module', '-e', script], {
      stdio: ['ignore', 'pipe', 'inherit'],
      env: { ...process.env, ...markerEntry },
    });
  }
  const markerEntry = Object.fromEntries([marker.split('=')]);
  const stubborn = `
    import { spawn } from 'node:child_process';
    const { startTerminalHost } = await import(${JSON.stringify(hostModule)});
    const host = startTerminalHost();
    const buffer = new Uint8Array(65536);
    let ready = 0;
    for (const script of [
      'trap "" HUP; echo ready; sleep 1000',
      'setsid sh -c \\'trap "" HUP; sleep 1000\\' & echo ready; sleep 1000',
      '(setsid sh -c \\'trap "" HUP TERM; sleep 1000 & sleep 1000\\' &) ; echo ready; sleep 1000',
    ]) {
      host.spawn({ file: '/bin/sh', args: ['-c', script], env: { ...process.env }, cwd: '/',
        geometry: { rows: 24, cols: 80 } },
        { onProgress: () => { ready += 1; if (ready === 3) console.log(process.pid); }, onWritable() {} });
    }`;

  test('nothing outlives a killed data service', async () => {
    const reaper = startUnderReaper(stubborn);
    const dataPid = Number(await firstLineOf(reaper));
    await eventually('all run', () => markedProcesses().length >= 8);
    const exited = once(reaper, 'exit');
    process.kill(dataPid, 'SIGKILL');
    expect(await within('the exit', exited)).toEqual([137, null]);
    expect(markedProcesses()).toEqual([]);
  });

  test.each([
    { ending: 'process.exit(9)', status: 9 },
    { ending: 'process.kill(process.pid, "SIGABRT")', status: 134 },
    { ending: 'undefined', status: 0 },
  ])('data that ends by $ending leaves status $status', async ({ ending, status }) => {
    const reaper = startUnderReaper(`console.log("up"); ${ending}`);
    expect(await within('the exit', once(reaper, 'exit'))).toEqual([status, null]);
  });

  test.each(['SIGTERM', 'SIGINT'] as const)('%s reaches data', async (signal) => {
    const reaper = startUnderReaper(`
      process.on('${signal}', () => process.exit(21));
      setInterval(() => undefined, 1000);
      console.log('up');`);
    await firstLineOf(reaper);
    const exited = once(reaper, 'exit');
    reaper.kill(signal);
    expect(await within('the exit', exited)).toEqual([21, null]);
  });

  test('what it adopts is waited for while data runs, and data is told of its own', async () => {
    const reaper = startUnderReaper(`
      import { spawnSync } from 'node:child_process';
      const { status } = spawnSync('/bin/sh', ['-c', '(sleep 0.1; exit 3) & (sleep 0.2; exit 4) & exit 6']);
      setInterval(() => undefined, 1000);
      console.log(status);`);
    expect(await firstLineOf(reaper)).toBe('6');
    await eventually('only data is left', () => {
      const children = childrenOf(reaper.pid!);
      return children.length === 1;
    });
    reaper.kill('SIGTERM');
    expect(await within('the exit', once(reaper, 'exit'))).toEqual([143, null]);
  });

  test('data dies with the reaper', async () => {
    const posix = new URL('adapters/posix.js', compiled).href;
    const reaper = startUnderReaper(`
      const { dieWithParent } = await import(${JSON.stringify(posix)});
      dieWithParent(9);
      setInterval(() => undefined, 1000);
      console.log(process.pid);`);
    const dataPid = Number(await firstLineOf(reaper));
    reaper.kill('SIGKILL');
    await eventually('data is gone', () => !isRunning(dataPid));
  });
});

function childrenOf(parent: number): readonly number[] {
  return readdirSync('/proc').flatMap((name) => {
    try {
      const stat = readFileSync(`/proc/${name}/stat`, 'latin1');
      return Number(stat.slice(stat.lastIndexOf(')')).split(' ')[2]) === parent
        ? [Number(name)]
        : [];
    } catch {
      return [];
    }
  });
}

async function cpuPerSecond(): Promise<number> {
  const before = process.cpuUsage();
  await delay(1000);
  const used = process.cpuUsage(before);
  return (used.user + used.system) / 1000;
}

async function outputOf(child: ChildProcess): Promise<string> {
  let text = '';
  child.stdout?.on('data', (chunk) => {
    text += chunk;
  });
  child.stderr?.on('data', (chunk) => process.stderr.write(chunk));
  await within('its end', once(child, 'close'));
  return text.trim();
}

async function firstLineOf(child: ChildProcess): Promise<string> {
  let text = '';
  return within(
    'a first line',
    new Promise((resolve) => {
      child.stdout?.on('data', (chunk) => {
        text += chunk;
        if (text.includes('\n')) {
          resolve(text.slice(0, text.indexOf('\n')));
        }
      });
    }),
  );
}

/** Two calls that only a test needs: they make descriptors a program would inherit. */
async function posixOfTheTest() {
  const { default: koffi } = await import('koffi');
  const libc = koffi.load(null);
  const { openSync } = await import('node:fs');
  return {
    dup: libc.func('int dup(int)') as (fd: number) => number,
    dup2: libc.func('int dup2(int, int)') as (from: number, to: number) => number,
    openNull: openSync('/dev/null', 'r'),
  };
}
