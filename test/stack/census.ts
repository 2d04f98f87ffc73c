/**
 * Which processes belong to a stack, read from the kernel rather than from what we remember.
 *
 * A process belongs when it works in the stack's folder or carries the stack's name in its
 * environment. Programs in terminals get a clean environment but work in the stack's workspace.
 */
import { readdirSync, readFileSync, readlinkSync } from 'node:fs';

export interface Census {
  readonly pid: number;
  readonly command: string;
}

/** Set for everything the stack starts itself. */
export const STACK_VARIABLE = 'WHEELHOUSE_TEST_STACK';

/** Every living process of a stack, its zombies left out. */
export function processesOf(folder: string): readonly Census[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name) && Number(name) !== process.pid)
    .filter((name) => belongs(name, folder))
    .map((name) => ({ pid: Number(name), command: commandOf(name) }));
}

function belongs(pid: string, folder: string): boolean {
  try {
    const cwd = readlinkSync(`/proc/${pid}/cwd`);
    return (
      cwd === folder ||
      cwd.startsWith(`${folder}/`) ||
      readFileSync(`/proc/${pid}/environ`, 'latin1').includes(`${STACK_VARIABLE}=${folder}\0`)
    );
  } catch {
    // Gone since it was listed, or a zombie: it has neither.
    return false;
  }
}

function commandOf(pid: string): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'latin1').replaceAll('\0', ' ').trim();
  } catch {
    return '(gone)';
  }
}

/** Processes whose parent this is. */
export function childrenOf(pid: number): readonly number[] {
  const text = readFileSync(`/proc/${pid}/task/${pid}/children`, 'latin1');
  return text
    .split(' ')
    .filter((part) => part !== '')
    .map(Number);
}

/** Whether a process lives; a zombie does not. */
export function isAlive(pid: number): boolean {
  try {
    return !/^\d+ \(.*\) [ZX] /s.test(readFileSync(`/proc/${pid}/stat`, 'latin1'));
  } catch {
    return false;
  }
}

/** Whether a process has been stopped where it stood. */
export function isStopped(pid: number): boolean {
  return / [T] /.test(readFileSync(`/proc/${pid}/stat`, 'latin1'));
}

/** Resident memory, in bytes. */
export function residentBytes(pid: number): number {
  const [, kib] = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? [];
  return Number(kib) * 1024;
}

/** Processor time used since its start, in seconds. */
export function cpuSeconds(pid: number): number {
  const text = readFileSync(`/proc/${pid}/stat`, 'latin1');
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ');
  return (Number(fields[11]) + Number(fields[12])) / 100;
}
