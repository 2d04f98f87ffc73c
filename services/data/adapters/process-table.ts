/** What /proc says of the processes of this machine. */
import { readdirSync, readFileSync } from 'node:fs';

/** One process. `startTime` (clock ticks since boot) tells two holders of one id apart. */
export interface ProcessEntry {
  readonly pid: number;
  readonly parent: number;
  readonly session: number;
  readonly startTime: number;
  /** False for one that has ended and only waits to be waited for. */
  readonly isRunning: boolean;
}

/**
 * Reads one line of /proc/PID/stat (proc(5)). The name of the program stands in parentheses and may
 * hold any byte, parentheses and line ends too: the fields are counted from the last one.
 * Undefined when it is no such line.
 */
export function parseProcessStat(line: string): ProcessEntry | undefined {
  const afterName = line.lastIndexOf(')');
  const fields = line
    .slice(afterName + 2)
    .trimEnd()
    .split(' ');
  const [state, parent, , session] = fields;
  const threadCount = fields[17];
  const startTime = fields[19];
  if (afterName < 0 || !state || !parent || !session || !threadCount || !startTime) {
    return undefined;
  }
  return {
    pid: Number.parseInt(line, 10),
    parent: Number(parent),
    session: Number(session),
    startTime: Number(startTime),
    // A first thread may have ended while others go on: that process looks like a zombie, and runs.
    isRunning: (state !== 'Z' && state !== 'X') || Number(threadCount) > 1,
  };
}

/** The process with this id now, if there is one. */
export function findProcess(pid: number): ProcessEntry | undefined {
  try {
    return parseProcessStat(readFileSync(`/proc/${pid}/stat`, 'latin1'));
  } catch (fault) {
    if (isGone(fault)) {
      return undefined;
    }
    throw fault;
  }
}

/** The ids of all processes now. One that starts while they are listed may be missing. */
export function listProcessIds(): readonly number[] {
  return readdirSync('/proc').map(Number).filter(Number.isInteger);
}

/** All processes now, but those that left while they were read. */
export function listProcesses(): readonly ProcessEntry[] {
  return listProcessIds().flatMap((pid) => findProcess(pid) ?? []);
}

/** Those of `processes` that descend from `ancestor`, itself not included. */
export function descendantsOf(
  ancestor: number,
  processes: readonly ProcessEntry[],
): readonly ProcessEntry[] {
  const children = byParent(processes);
  const found = [...(children.get(ancestor) ?? [])];
  // An array's iterator sees what is added while it runs.
  for (const entry of found) {
    found.push(...(children.get(entry.pid) ?? []));
  }
  return found;
}

function byParent(processes: readonly ProcessEntry[]): ReadonlyMap<number, ProcessEntry[]> {
  const children = new Map<number, ProcessEntry[]>();
  for (const entry of processes) {
    const siblings = children.get(entry.parent);
    if (siblings === undefined) {
      children.set(entry.parent, [entry]);
    } else {
      siblings.push(entry);
    }
  }
  return children;
}

/** ENOENT before the open, ESRCH after it. */
function isGone(fault: unknown): boolean {
  return (
    fault instanceof Error && 'code' in fault && (fault.code === 'ENOENT' || fault.code === 'ESRCH')
  );
}
