/** The images of this checkout. */
import { join } from 'node:path';
import { root } from '../tidy/project.js';
import { docker } from './engine-command.js';

export interface Images {
  readonly tag: string;
  readonly service: string;
  readonly data: string;
}

/** Plain JavaScript, as set-up is: it runs before anything is installed. */
const { holdLock } = (await import(join(root, 'deploy', 'setup-lock.mjs'))) as {
  readonly holdLock: (path: string, say: (line: string) => void) => { release(): void };
};

let building: Promise<Images> | undefined;

/**
 * Builds them, unless WHEELHOUSE_IMAGE_TAG names those that were built for this run. Where no registry
 * is reached, deploy/offline-base must have been there first.
 */
export function builtImages(): Promise<Images> {
  building ??= build();
  return building;
}

async function build(): Promise<Images> {
  const given = process.env['WHEELHOUSE_IMAGE_TAG'];
  const tag = given ?? 'test';
  const images = { tag, service: `wheelhouse/service:${tag}`, data: `wheelhouse/data:${tag}` };
  if (given === undefined) {
    // Two test files at once would do the same work twice.
    const lock = holdLock(join(root, '.images.lock'), () => undefined);
    try {
      for (const target of ['service', 'data'] as const) {
        const file = join(root, 'deploy', 'Dockerfile');
        const where = ['--network', 'host', '--file', file, '--target', target];
        await docker('build', ...where, '--tag', images[target], root);
      }
    } finally {
      lock.release();
    }
  }
  return images;
}
