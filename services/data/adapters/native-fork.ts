/**
 * The one entry of node-pty that is used: forks a program into a new terminal.
 *
 * It is exported but not public. Around it stands everything node-pty gets wrong at an exit or a
 * second fork, so the public `spawn` is not an alternative; the contract test guards this shape.
 */
import { createRequire } from 'node:module';
import type { Exit, Geometry } from '../domain/terminal.js';

/** Forks. Returns the master, non-blocking, and the process; throws what the kernel refuses. */
export type Fork = (program: ForkedProgram, onReaped: (exit: Exit) => void) => Forked;

export interface ForkedProgram {
  readonly file: string;
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly cwd: string;
  readonly geometry: Geometry;
  /** Undefined: as this process. */
  readonly runAs: RunAs | undefined;
}

/** Another user that programs run as. */
export interface RunAs {
  readonly uid: number;
  readonly gid: number;
}

export interface Forked {
  readonly master: number;
  readonly pid: number;
}

/** Forked, and not known to have been waited for. */
const forkedPids = new Set<number>();

/** Whether node-pty waits for this child: whoever else did would leave it without a status. */
export function isForked(pid: number): boolean {
  return forkedPids.has(pid);
}

/** `onReaped` is called from the event loop, once, after the process has been waited for. */
export const nativeFork: Fork = (program, onReaped) => {
  const forked = nodePty.native.fork(
    program.file,
    program.args,
    Object.entries(program.env).map(([name, value]) => `${name}=${value}`),
    program.cwd,
    program.geometry.cols,
    program.geometry.rows,
    program.runAs?.uid ?? -1,
    program.runAs?.gid ?? -1,
    true, // sets IUTF8, so that the line editor erases whole characters
    '', // a helper of another system
    (code, signal) => {
      forkedPids.delete(forked.pid);
      onReaped(toExit(code, signal));
    },
  );
  forkedPids.add(forked.pid);
  return { master: forked.fd, pid: forked.pid };
};

/** A killed program comes with code 0: the signal decides. */
function toExit(code: number, signal: number): Exit {
  return signal > 0 ? { kind: 'signal', signal } : { kind: 'code', code };
}

const nodePty = createRequire(import.meta.url)('node-pty') as {
  readonly native: {
    fork(
      file: string,
      args: readonly string[],
      env: readonly string[],
      cwd: string,
      cols: number,
      rows: number,
      uid: number,
      gid: number,
      utf8: boolean,
      helperPath: string,
      onExit: (code: number, signal: number) => void,
    ): { readonly fd: number; readonly pid: number };
  };
};
