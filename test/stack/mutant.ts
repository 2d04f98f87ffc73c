/**
 * A copy of the compiled product with one check taken out.
 *
 * It lies inside the checkout, because compiled output finds its packages by looking upwards, and
 * carries a package.json of its own, because `#kernel/…` and the like are looked up in the nearest.
 */
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { checkout, ownDist } from './stack-home.js';

/** One replacement in one compiled file. */
export interface Mutation {
  /** The source it was compiled from, from the root of the checkout. */
  readonly file: string;
  /** Must match the compiled text exactly once. */
  readonly find: string | RegExp;
  readonly replace: string;
}

export interface Mutant extends Disposable {
  /** To be given to `startProcesses`. */
  readonly distDir: string;
}

/** Thrown when a mutation does not fit the code any more: the falsifier, not the product, is wrong. */
export class MutationMismatch extends Error {
  override readonly name = 'MutationMismatch';
}

/** Makes a mutant. Throws a `MutationMismatch` unless every mutation matches exactly once. */
export function makeMutant(...mutations: readonly Mutation[]): Mutant {
  const home = join(checkout, '.mutants');
  mkdirSync(home, { recursive: true });
  const folder = mkdtempSync(join(home, 'm-'));
  const dispose = (): void => rmSync(folder, { recursive: true, force: true });
  try {
    const distDir = join(folder, 'dist');
    for (const part of ['proto', 'services', 'clients']) {
      cpSync(join(ownDist, part), join(distDir, part), { recursive: true });
    }
    cpSync(join(checkout, 'package.json'), join(folder, 'package.json'));
    for (const mutation of mutations) {
      mutate(distDir, mutation);
    }
    return { distDir, [Symbol.dispose]: dispose };
  } catch (error) {
    dispose();
    throw error;
  }
}

function mutate(distDir: string, { file, find, replace }: Mutation): void {
  const path = join(distDir, file.replace(/\.ts$/, '.js'));
  writeFileSync(path, replaceOnce(readFileSync(path, 'utf8'), find, replace, file));
}

/** Replaces the one match there is. */
export function replaceOnce(
  text: string,
  find: string | RegExp,
  replace: string,
  file: string,
): string {
  const matches =
    typeof find === 'string'
      ? text.split(find).length - 1
      : [...text.matchAll(new RegExp(find.source, `${find.flags.replace('g', '')}g`))].length;
  if (matches !== 1) {
    throw new MutationMismatch(`${file}: ${String(find)} matches ${matches} times, not once`);
  }
  return text.replace(find, () => replace);
}
