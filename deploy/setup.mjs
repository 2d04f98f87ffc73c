/**
 * Makes a fresh clone ready to run: what is missing is said, the rest is installed and compiled.
 *
 * Runs before `npm start` and `npm test`. Quick when nothing has changed. Everything it says goes to
 * stderr, so that stdout stays the program's. It uses nothing but Node: it runs before any install.
 */
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  chmodSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { holdLock } from './setup-lock.mjs';
import { missingTools, nodeProblem } from './setup-tools.mjs';

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const installStamp = join(root, 'node_modules', '.wheelhouse-installed');
const buildStamp = join(root, 'dist', '.wheelhouse-built');
const cli = join(root, 'dist', 'clients', 'cli', 'main.js');

/** sysexits: the machine lacks something, or a step failed. */
const EXIT_MACHINE = 69;
const EXIT_STEP_FAILED = 70;

/** Set-up cannot go on: what to tell the person, and the exit code. */
class Stopped extends Error {
  constructor(code, text) {
    super(text);
    this.code = code;
  }
}

try {
  main();
} catch (error) {
  if (!(error instanceof Stopped)) {
    throw error;
  }
  for (const line of error.message.split('\n')) {
    say(line);
  }
  process.exitCode = error.code;
}

function main() {
  const problem = nodeProblem(process.versions.node);
  if (problem !== undefined) {
    throw new Stopped(EXIT_MACHINE, problem);
  }
  const lock = holdLock(join(root, '.setup.lock'), say);
  try {
    install();
    build();
    linkCli();
  } finally {
    lock.release();
  }
}

/** Installs unless what the lock file names is there already, for this very Node. */
function install() {
  const wanted = digest([
    readFileSync(join(root, 'package-lock.json')),
    `${process.versions.modules} ${process.platform} ${process.arch}`,
  ]);
  if (readStamp(installStamp) === wanted) {
    return;
  }
  if (!isInstalledAsLocked() || !addonsLoad()) {
    const missing = missingTools();
    if (missing.length > 0) {
      throw new Stopped(EXIT_MACHINE, missing.join('\n'));
    }
    say('installing what package-lock.json names (npm ci).');
    say('native add-ons are compiled here: a few minutes in which nothing is printed.');
    npmCi();
  }
  writeFileSync(installStamp, wanted);
}

/** True for a tree that somebody has already installed from this lock file. */
function isInstalledAsLocked() {
  const hidden = join(root, 'node_modules', '.package-lock.json');
  if (!existsSync(hidden)) {
    return false;
  }
  const there = JSON.parse(readFileSync(hidden, 'utf8')).packages;
  const locked = JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8')).packages;
  return Object.entries(locked).every(
    ([path, entry]) =>
      path === '' ||
      entry.optional === true ||
      (there[path]?.version === entry.version && existsSync(join(root, path))),
  );
}

/** The two that are compiled may be there for another Node, or not compiled at all. */
function addonsLoad() {
  const program = "new (require('better-sqlite3'))(':memory:').close(); require('node-pty');";
  return spawnSync(process.execPath, ['-e', program], { cwd: root, stdio: 'ignore' }).status === 0;
}

function npmCi() {
  const npm = process.env.npm_execpath;
  const args = ['ci', '--include=dev', '--no-audit', '--no-fund', '--loglevel=error'];
  const [command, argv] =
    npm?.endsWith('.js') === true ? [process.execPath, [npm, ...args]] : ['npm', args];
  const done = spawnSync(command, argv, {
    cwd: root,
    stdio: ['ignore', 2, 2],
    env: { ...process.env, ...nativeBuildEnvironment() },
  });
  if (done.status !== 0) {
    throw new Stopped(
      EXIT_STEP_FAILED,
      'npm ci failed; what it printed above says why. Then try again.',
    );
  }
}

/**
 * Compiles against the headers beside this Node when they are there, so that nothing is fetched for
 * it; and builds better-sqlite3 from its source instead of looking for a binary on the network.
 */
function nativeBuildEnvironment() {
  const prefix = dirname(dirname(process.execPath));
  const hasHeaders = existsSync(join(prefix, 'include', 'node', 'node.h'));
  if (!hasHeaders) {
    say('no headers beside node: node-gyp fetches them from where Node is published.');
  }
  return {
    npm_config_build_from_source: 'better-sqlite3',
    ...(hasHeaders ? { npm_config_nodedir: prefix } : {}),
  };
}

/** Compiles unless no source has changed since the last time. */
function build() {
  const wanted = sourcesDigest();
  if (readStamp(buildStamp) === wanted && existsSync(cli)) {
    return;
  }
  say('compiling.');
  const typescript = createRequire(join(root, 'package.json')).resolve('typescript/package.json');
  const tsc = join(dirname(typescript), 'bin', 'tsc');
  const done = spawnSync(process.execPath, [tsc, '-p', 'tsconfig.json'], {
    cwd: root,
    stdio: ['ignore', 2, 2],
  });
  if (done.status !== 0) {
    throw new Stopped(EXIT_STEP_FAILED, 'the sources do not compile; see above.');
  }
  removeOrphans(join(root, 'dist'));
  writeFileSync(buildStamp, wanted);
}

/** What decides whether to compile: names, sizes and times of all sources. */
function sourcesDigest() {
  const parts = ['tsconfig.json', 'package.json', 'package-lock.json'].map((name) => entryOf(name));
  for (const folder of ['proto/gen', 'services', 'clients', 'deploy', 'test']) {
    for (const path of filesUnder(join(root, folder))) {
      if (path.endsWith('.ts')) {
        parts.push(entryOf(relative(root, path)));
      }
    }
  }
  return digest(parts);
}

function entryOf(name) {
  const { size, mtimeMs } = statSync(join(root, name));
  return `${name} ${size} ${mtimeMs}\n`;
}

function filesUnder(folder) {
  if (!existsSync(folder)) {
    return [];
  }
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
    .sort();
}

/** A compiled file whose source is gone would go on being loaded by whoever still names it. */
function removeOrphans(dist) {
  for (const path of filesUnder(dist)) {
    const source = join(root, relative(dist, path)).replace(/\.js$/, '.ts');
    if (path.endsWith('.js') && !existsSync(source)) {
      rmSync(path);
    }
  }
}

/** So that `npx wheelhouse …` works at once, offline, without installing the package into itself. */
function linkCli() {
  if (!existsSync(cli)) {
    return;
  }
  chmodSync(cli, 0o755);
  const bin = join(root, 'node_modules', '.bin');
  mkdirSync(bin, { recursive: true });
  const link = join(bin, 'wheelhouse');
  if (lstatSync(link, { throwIfNoEntry: false }) === undefined) {
    symlinkSync(relative(bin, cli), link);
  }
}

function readStamp(path) {
  return existsSync(path) ? readFileSync(path, 'utf8') : undefined;
}

function digest(parts) {
  const hash = createHash('sha256');
  for (const part of parts) {
    hash.update(part);
  }
  return hash.digest('hex');
}

function say(line) {
  process.stderr.write(`set-up: ${line}\n`);
}
