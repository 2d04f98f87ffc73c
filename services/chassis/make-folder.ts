/** Makes a folder and those above it, for its owner alone. */
import { mkdirSync } from 'node:fs';
import { dirname } from 'node:path';

/**
 * Throws what mkdir(2) says, for the first folder that cannot be made.
 *
 * Node's own recursive mkdir never returns where the system answers ENOENT for a folder that cannot
 * be made, as below /proc.
 */
export function makeFolder(path: string): void {
  try {
    mkdirSync(path, { mode: 0o700 });
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? error.code : undefined;
    if (code === 'EEXIST') {
      return;
    }
    if (code !== 'ENOENT' || dirname(path) === path) {
      throw error;
    }
    makeFolder(dirname(path));
    mkdirSync(path, { mode: 0o700 });
  }
}
