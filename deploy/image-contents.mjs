/**
 * Copies what runs, and nothing else, from a built checkout into the folder an image takes.
 *
 * usage: node deploy/image-contents.mjs FROM TO
 */
import { chmodSync, cpSync, mkdirSync, readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';

const [from = '', to = ''] = process.argv.slice(2);

/** Of the checkout. Compiled code is below dist; proto/gen is compiled into it. */
const PARTS = ['package.json', 'LICENSE', 'dist', 'node_modules'];

/** Of packages: what compiled them, and what is for other systems. */
const LEFTOVERS = {
  'better-sqlite3': ['binding.gyp', 'deps', 'src'],
  'node-pty': [
    'binding.gyp',
    'deps',
    'node-addon-api',
    'prebuilds',
    'scripts',
    'src',
    'third_party',
    'typings',
  ],
  koffi: ['doc', 'vendor'],
  'node-addon-api': ['.'],
};

/** Of any package: what is there for who works on it. */
const NOT_SHIPPED = [
  'test',
  'tests',
  '__tests__',
  'bench',
  'benchmark',
  'benchmarks',
  'examples',
  '.github',
];

/** Sources, types, maps and tests: nothing in the image compiles. */
const NOT_RUN = /\.(?:test\.js|[cm]?ts|map|md|markdown|h|c|cc|gyp|gypi)$/i;
/** Whatever it is called: a licence asks to travel with what it covers. */
const LICENCE = /licen[cs]e|copying|notice/i;

mkdirSync(to, { recursive: true });
for (const part of PARTS) {
  cpSync(join(from, part), join(to, part), { recursive: true, verbatimSymlinks: true });
}
const modules = join(to, 'node_modules');
for (const [name, paths] of Object.entries(LEFTOVERS)) {
  for (const path of paths) {
    rmSync(join(modules, name, path), { recursive: true, force: true });
  }
}
for (const entry of readdirSync(modules, { recursive: true, withFileTypes: true })) {
  if (entry.isFile() && entry.name === 'package.json') {
    for (const name of NOT_SHIPPED) {
      rmSync(join(entry.parentPath, name), { recursive: true, force: true });
    }
  }
}
for (const name of ['better-sqlite3', 'node-pty']) {
  keepAddon(join(modules, name, 'build'));
}
for (const entry of readdirSync(to, { recursive: true, withFileTypes: true })) {
  if (entry.isFile() && NOT_RUN.test(entry.name) && !LICENCE.test(entry.name)) {
    rmSync(join(entry.parentPath, entry.name));
  }
}
chmodSync(join(to, 'dist', 'clients', 'cli', 'main.js'), 0o755);
rmSync(join(modules, '.bin'), { recursive: true, force: true });
rmSync(join(modules, '.package-lock.json'), { force: true });

/** The object that is loaded stays: node-gyp leaves 20 MB beside it. */
function keepAddon(build) {
  const release = join(build, 'Release');
  for (const entry of readdirSync(build)) {
    if (entry !== 'Release') {
      rmSync(join(build, entry), { recursive: true });
    }
  }
  for (const entry of readdirSync(release)) {
    if (!/^(?:better_sqlite3|pty)\.node$/.test(entry)) {
      rmSync(join(release, entry), { recursive: true });
    }
  }
}
