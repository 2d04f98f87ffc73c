/** Holds a state folder for one `up`. The kernel lets go of it when the process ends, however it does. */
import { closeSync, openSync } from 'node:fs';
import koffi from 'koffi';

/** The same numbers on Linux and macOS. */
const LOCK_EX = 2;
const LOCK_NB = 4;

/** Undefined while another process holds it. The file stays: removing it would race. */
export function tryLock(path: string): Disposable | undefined {
  const flock = koffi.load(null).func('int flock(int fd, int operation)');
  // Node marks it close-on-exec, so no child keeps the folder.
  const fd = openSync(path, 'a', 0o600);
  if (flock(fd, LOCK_EX | LOCK_NB) !== 0) {
    closeSync(fd);
    return undefined;
  }
  return { [Symbol.dispose]: () => closeSync(fd) };
}
