/** A deployment of its own for one test file: a state folder, and the compiled command on it. */
import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import * as pty from 'node-pty';

export interface Ended {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

export interface Started {
  readonly child: ChildProcess;
  readonly ended: Promise<Ended>;
  /** Resolves when its stdout and stderr together match. */
  printed(pattern: RegExp): Promise<void>;
}

export interface TerminalSession {
  readonly ended: Promise<number>;
  shown(): string;
  type(text: string): void;
  printed(pattern: RegExp): Promise<void>;
}

const main = fileURLToPath(new URL('../../dist/clients/cli/main.js', import.meta.url));

export class ScratchDeployment implements AsyncDisposable {
  readonly dir = mkdtempSync(join(tmpdir(), 'wheelhouse-cli-'));

  get stateDir(): string {
    return join(this.dir, 'state');
  }

  start(args: readonly string[], input?: string): Started {
    const child = spawn(process.execPath, ['--', main, ...args], {
      cwd: this.dir,
      env: { ...process.env, WHEELHOUSE_STATE: this.stateDir, NO_COLOR: '1' },
      stdio: [input === undefined ? 'ignore' : 'pipe', 'pipe', 'pipe'],
    });
    const said = { stdout: '', stderr: '' };
    child.stdout?.setEncoding('utf8').on('data', (text: string) => {
      said.stdout += text;
    });
    child.stderr?.setEncoding('utf8').on('data', (text: string) => {
      said.stderr += text;
    });
    child.stdin?.end(input);
    const ended = new Promise<Ended>((resolve) => {
      child.once('close', (code) => resolve({ code, ...said }));
    });
    const printed = (pattern: RegExp): Promise<void> =>
      until(() => pattern.test(said.stdout + said.stderr));
    return { child, ended, printed };
  }

  /** The same in a terminal of its own, which answers nothing by itself. */
  startInTerminal(args: readonly string[]): TerminalSession {
    const terminal = pty.spawn(process.execPath, ['--', main, ...args], {
      cwd: this.dir,
      env: { ...process.env, WHEELHOUSE_STATE: this.stateDir, TERM: 'xterm-256color' },
      cols: 80,
      rows: 24,
    });
    let shown = '';
    terminal.onData((text) => {
      shown += text;
    });
    const ended = new Promise<number>((resolve) => {
      terminal.onExit(({ exitCode }) => resolve(exitCode));
    });
    return {
      ended,
      shown: () => shown,
      type: (text) => terminal.write(text),
      printed: (pattern) => until(() => pattern.test(shown)),
    };
  }

  async wheelhouse(...args: readonly string[]): Promise<Ended> {
    return await this.start(args).ended;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.wheelhouse('down', '--yes');
    rmSync(this.dir, { recursive: true, force: true });
  }
}

async function until(isTrue: () => boolean): Promise<void> {
  while (!isTrue()) {
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}
