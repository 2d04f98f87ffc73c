/**
 * The process above the data service: nothing that data started outlives data (law B7).
 *
 *   node reaper.js -- <arguments of node>
 *
 * As a subreaper it becomes the parent of whatever below it loses its own, sessions of their own
 * included, so its descendants are all there is. While data runs it waits for those of them that end;
 * once data has ended, however it did, it kills what has not left after a grace, and leaves with
 * data's status.
 */
import { spawn } from 'node:child_process';
import { constants } from 'node:os';
import { setTimeout as delay } from 'node:timers/promises';
import { becomeSubreaper, endedChild, PosixFault, reap, signalExactly } from './adapters/posix.js';
import {
  descendantsOf,
  findProcess,
  listProcesses,
  type ProcessEntry,
} from './adapters/process-table.js';

/** How long programs have to leave: their terminals were hung up when data's descriptors closed. */
const leaveGraceMs = 2_000;
/** How long after SIGKILL the kernel may take: only a process stuck inside it needs longer. */
const killGraceMs = 8_000;
const lookEveryMs = 20;

process.exitCode = await superviseData(process.argv.slice(process.argv.indexOf('--') + 1));

/** Returns the exit status: data's own, or as a shell has it, 128 and the signal. */
async function superviseData(nodeArguments: readonly string[]): Promise<number> {
  becomeSubreaper();
  const data = spawn(process.execPath, nodeArguments, { stdio: 'inherit' });
  const reapAdopted = () => reapAllBut(data.pid);
  const forward = (signal: NodeJS.Signals) => data.kill(signal);
  process.on('SIGCHLD', reapAdopted);
  process.on('SIGTERM', forward).on('SIGINT', forward).on('SIGHUP', forward);

  const status = await new Promise<number>((resolve, reject) => {
    data.once('error', reject);
    data.once('exit', (code, signal) => {
      resolve(signal === null ? (code ?? 1) : 128 + constants.signals[signal]);
    });
  });
  await endDescendants();
  process.off('SIGCHLD', reapAdopted);
  process.off('SIGTERM', forward).off('SIGINT', forward).off('SIGHUP', forward);
  return status;
}

/**
 * Waits for every adopted child that has ended. Not for data: Node waits for that one itself, and
 * would never hear of its end. While data is first in line the others wait until it has.
 */
function reapAllBut(dataPid: number | undefined): void {
  for (let pid = endedChild(); pid !== undefined && pid !== dataPid; pid = endedChild()) {
    reap(pid);
  }
}

async function endDescendants(): Promise<void> {
  const killAt = performance.now() + leaveGraceMs;
  const giveUpAt = killAt + killGraceMs;
  for (;;) {
    reapAllBut(undefined);
    const left = descendantsOf(process.pid, listProcesses());
    const now = performance.now();
    if (left.length === 0 || now >= giveUpAt) {
      return;
    }
    if (now >= killAt) {
      killAll(left);
    }
    await delay(lookEveryMs);
  }
}

function killAll(processes: readonly ProcessEntry[]): void {
  for (const { pid, startTime } of processes) {
    try {
      signalExactly(
        pid,
        constants.signals.SIGKILL,
        () => findProcess(pid)?.startTime === startTime,
      );
    } catch (fault) {
      // Not ours to kill: it is left to the next look, and in the end to whoever is above us.
      if (!(fault instanceof PosixFault)) {
        throw fault;
      }
    }
  }
}
