/** The checkout as the tidy rules see it: paths from its root, with their text. */
import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';

/** By path from the root, with `/` between the parts. */
export type Project = ReadonlyMap<string, string>;

/** A rule of the house. */
export interface Rule {
  /** The promise, as a sentence. */
  readonly promise: string;
  /** What breaks it, one line each; empty when it holds. */
  check(project: Project): readonly string[];
  /** A project that breaks it: proves that the rule can fail. */
  readonly breach: Readonly<Record<string, string>>;
}

/** From test/tidy as from dist/test/tidy, though only the first is asked for. */
export const root = dirname(dirname(dirname(fileURLToPath(import.meta.url))));

const FOLDERS = ['proto', 'services', 'clients', 'deploy', 'test', 'docs', '.ci'];
const ROOT_FILES = ['README.md', 'CONTRIBUTING.md', 'CHANGELOG.md', 'package.json'];
const TEXT = /\.(ts|mjs|js|proto|md|json|ya?ml|sh|c)$/;

/** Reads the checkout. Generated code is left out: nobody wrote it. */
export function readProject(): Project {
  const inFolders = FOLDERS.flatMap((folder) => filesUnder(join(root, folder)));
  const paths = [...inFolders, ...ROOT_FILES.map((name) => join(root, name))]
    .map((path) => relative(root, path).replaceAll('\\', '/'))
    .filter((path) => TEXT.test(path) && !path.startsWith('proto/gen/'));
  return new Map(paths.map((path) => [path, readFileSync(join(root, path), 'utf8')]));
}

function filesUnder(folder: string): readonly string[] {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && !entry.parentPath.includes('node_modules'))
    .map((entry) => join(entry.parentPath, entry.name));
}

/** The TypeScript of a project, tests left out. */
export function sources(project: Project): readonly [path: string, text: string][] {
  return [...project].filter(([path]) => path.endsWith('.ts') && !isTest(path));
}

/** Whether a file is only there to test. */
export function isTest(path: string): boolean {
  return path.endsWith('.test.ts') || path.startsWith('test/');
}
