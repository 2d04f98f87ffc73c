/**
 * Stages the npm package @wheelhouse/client into a folder, ready for `npm pack` or `npm publish`:
 *
 *   node clients/typescript/package/stage.mjs FOLDER && npm pack FOLDER
 *
 * It is the public index with what that imports, compiled with declarations, in the folders that this
 * checkout has; the `#…` imports lead to them by a map of the package's own. Version and dependencies
 * are the product's: every npm package that a staged file imports, and no other. The package.json lies
 * beside this and not beside the sources, where Node would take it for theirs.
 */
import { spawnSync } from 'node:child_process';
import { copyFileSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const here = dirname(fileURLToPath(import.meta.url));
const root = dirname(dirname(dirname(here)));
const [target] = process.argv.slice(2);

if (target === undefined) {
  process.stderr.write('usage: stage.mjs FOLDER\n');
  process.exitCode = 2;
} else {
  stage(target);
}

function stage(folder) {
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  compile(folder);
  const product = readJson(join(root, 'package.json'));
  const manifest = readJson(join(here, 'package.json'));
  const { name, ...rest } = manifest;
  const dependencies = Object.fromEntries(
    packagesImportedIn(folder).map((each) => [each, versionIn(product, each)]),
  );
  // What the declarations speak of beside them: Buffer, and Disposable on older compilers.
  const peerDependencies = { '@types/node': '>=20' };
  const peerDependenciesMeta = { '@types/node': { optional: true } };
  const whole = { name, version: product.version, ...rest, dependencies, peerDependencies };
  writeFileSync(
    join(folder, 'package.json'),
    `${JSON.stringify({ ...whole, peerDependenciesMeta }, undefined, 2)}\n`,
  );
  copyFileSync(join(root, 'LICENSE'), join(folder, 'LICENSE'));
  copyFileSync(join(here, '..', 'README.md'), join(folder, 'README.md'));
}

function compile(folder) {
  const typescript = createRequire(import.meta.url).resolve('typescript/package.json');
  const tsc = join(dirname(typescript), 'bin', 'tsc');
  const args = [tsc, '-p', join(here, 'tsconfig.json'), '--outDir', folder];
  const done = spawnSync(process.execPath, args, { stdio: ['ignore', 2, 2] });
  if (done.status !== 0) {
    throw new Error('the client library does not compile; see above');
  }
}

/** Bare specifiers of the staged code, as package names. */
function packagesImportedIn(folder) {
  const names = readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && /\.(?:js|d\.ts)$/.test(entry.name))
    .map((entry) => readFileSync(join(entry.parentPath, entry.name), 'utf8'))
    .flatMap((text) => [...text.matchAll(/(?:from|import) ?\(?['"]([^'"]+)['"]/g)])
    .map(([, specifier]) => specifier)
    .filter((specifier) => !/^(?:[.#]|node:)/.test(specifier))
    .map((specifier) => /^(?:@[^/]+\/)?[^/]+/.exec(specifier)[0]);
  return [...new Set(names)].sort();
}

function versionIn(product, name) {
  const version = product.dependencies[name];
  if (version === undefined) {
    throw new Error(`the client imports ${name}, which is no dependency of the product`);
  }
  return version;
}

function readJson(path) {
  return JSON.parse(readFileSync(path, 'utf8'));
}
