/**
 * The process above the data service: nothing that data started outlives data (law B7).
 *
 *   node reaper.js -- <arguments of node>
 *
 * While data runs it waits for those of its descendants that lose data as their parent; once data has
 * ended, however it did, it ends what is left of them, and leaves with data's status.
 */
import { spawn } from 'node:child_process';
import { constants } from 'node:os';
import { Descendants } from './adapters/descendants.js';

process.exitCode = await superviseData(process.argv.slice(process.argv.indexOf('--') + 1));

/** Returns the exit status: data's own, or as a shell has it, 128 and the signal. */
async function superviseData(nodeArguments: readonly string[]): Promise<number> {
  let dataPid: number | undefined;
  // Node waits for data itself.
  using descendants = new Descendants((pid) => pid === dataPid);
  const data = spawn(process.execPath, nodeArguments, { stdio: 'inherit' });
  dataPid = data.pid;
  const forward = (signal: NodeJS.Signals) => data.kill(signal);
  process.on('SIGTERM', forward).on('SIGINT', forward).on('SIGHUP', forward);

  const status = await new Promise<number>((resolve, reject) => {
    data.once('error', reject);
    data.once('exit', (code, signal) => {
      resolve(signal === null ? (code ?? 1) : 128 + constants.signals[signal]);
    });
  });
  dataPid = undefined;
  await descendants.end();
  process.off('SIGTERM', forward).off('SIGINT', forward).off('SIGHUP', forward);
  return status;
}
