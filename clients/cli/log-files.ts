/** Logs of processes that write to them directly: appended to, for their owner alone, and bounded. */
import { copyFileSync, openSync, statSync, truncateSync } from 'node:fs';

/** One that has outgrown this becomes the old one, of which one is kept. */
const LOG_BYTES_MAX = 8 * 1024 * 1024;

/** Opens a log for a child to append to. */
export function openLog(path: string): number {
  trimLog(path);
  return openSync(path, 'a', 0o600);
}

/**
 * Makes room when a log has outgrown its bound. Its writer appends, so it goes on at the new
 * beginning; a line written between the copy and the cut is lost.
 */
export function trimLog(path: string): void {
  const size = statSync(path, { throwIfNoEntry: false })?.size ?? 0;
  if (size > LOG_BYTES_MAX) {
    copyFileSync(path, `${path}.1`);
    truncateSync(path);
  }
}
