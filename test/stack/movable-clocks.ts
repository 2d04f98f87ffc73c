/**
 * Clocks that can be moved while a service runs: libfaketime reads what time it is from a file.
 *
 * The time of day alone: what measures intervals goes on, as it does when a person sets a clock.
 */
import { mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Plane } from './stack.js';

const LIBRARIES = '/usr/lib';

export class MovableClocks {
  readonly folder: string;
  /** To be loaded before everything else; the path it must have wherever it is loaded. */
  readonly library: string;

  /** Makes the folder that says the times. Throws where the library is not installed. */
  constructor(folder: string, planes: readonly Plane[]) {
    this.folder = folder;
    this.library = library();
    mkdirSync(folder, { mode: 0o755 });
    for (const plane of planes) {
      this.move(plane, 0);
    }
  }

  environment(plane: Plane): Record<string, string> {
    return {
      LD_PRELOAD: this.library,
      FAKETIME_TIMESTAMP_FILE: this.#file(plane),
      FAKETIME_NO_CACHE: '1',
      FAKETIME_DONT_FAKE_MONOTONIC: '1',
    };
  }

  move(plane: Plane, byMs: number): void {
    writeFileSync(this.#file(plane), `${byMs < 0 ? '-' : '+'}${Math.abs(byMs) / 1000}`);
  }

  #file(plane: Plane): string {
    return join(this.folder, plane);
  }
}

function library(): string {
  const found = readdirSync(LIBRARIES)
    .flatMap((triplet) => listed(join(LIBRARIES, triplet, 'faketime')))
    .find((path) => path.endsWith('/libfaketimeMT.so.1'));
  if (found === undefined) {
    throw new Error('libfaketime is not installed');
  }
  return found;
}

function listed(folder: string): readonly string[] {
  try {
    return readdirSync(folder).map((name) => join(folder, name));
  } catch {
    return [];
  }
}
