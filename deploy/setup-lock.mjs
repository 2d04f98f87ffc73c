/** One set-up at a time in a checkout: two at once would install over each other. */
import { readFileSync, rmSync, writeFileSync } from 'node:fs';

const POLL_MS = 200;

/** Waits for whoever holds the lock; takes over from one that died. */
export function holdLock(path, say) {
  let hasSaid = false;
  while (!take(path)) {
    const holder = readHolder(path);
    if (holder !== undefined && !isAlive(holder)) {
      rmSync(path, { force: true });
      continue;
    }
    if (!hasSaid) {
      hasSaid = true;
      say(`another set-up of this checkout is running (process ${holder}); waiting for it.`);
    }
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, POLL_MS);
  }
  return { release: () => rmSync(path, { force: true }) };
}

function take(path) {
  try {
    writeFileSync(path, String(process.pid), { flag: 'wx' });
    return true;
  } catch (error) {
    if (error.code === 'EEXIST') {
      return false;
    }
    throw error;
  }
}

/** Undefined while the holder has made the file but not yet written into it, or has just removed it. */
function readHolder(path) {
  try {
    const pid = Number(readFileSync(path, 'utf8'));
    return Number.isSafeInteger(pid) && pid > 0 ? pid : undefined;
  } catch {
    return undefined;
  }
}

function isAlive(pid) {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return error.code === 'EPERM';
  }
}
