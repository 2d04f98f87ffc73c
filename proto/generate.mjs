// Writes proto/gen from the .proto files, or proves that it is what they generate.
// usage: node proto/generate.mjs [--check]
import { spawnSync } from 'node:child_process';
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';

const here = dirname(fileURLToPath(import.meta.url));
const buf = join(here, '..', 'node_modules', '.bin', 'buf');

const scratch = mkdtempSync(join(tmpdir(), 'wheelhouse-gen-'));
try {
  const fresh = generateInto(scratch);
  const checkedIn = join(here, 'gen');
  if (process.argv.includes('--check')) {
    report(differences(readTree(checkedIn), readTree(fresh)));
  } else {
    rmSync(checkedIn, { recursive: true, force: true });
    cpSync(fresh, checkedIn, { recursive: true });
  }
} finally {
  rmSync(scratch, { recursive: true, force: true });
}

/** The stubs, then the tables read off the descriptors: who may call what, and the descriptors themselves. */
function generateInto(folder) {
  const image = join(folder, 'image.binpb');
  run(buf, ['generate', '-o', folder]);
  run(buf, ['build', '-o', image]);
  const channels = run(process.execPath, ['channels.mjs', image]);
  writeFileSync(join(folder, 'gen', 'channels.ts'), channels);
  const set = join(folder, 'set.binpb');
  run(buf, ['build', '--exclude-source-info', '--as-file-descriptor-set', '-o', set]);
  const descriptors = run(process.execPath, ['descriptors.mjs', set]);
  writeFileSync(join(folder, 'gen', 'descriptors.ts'), descriptors);
  return join(folder, 'gen');
}

function run(command, args) {
  const done = spawnSync(command, args, {
    cwd: here,
    stdio: ['ignore', 'pipe', 'inherit'],
    maxBuffer: 64 * 1024 * 1024,
  });
  if (done.status !== 0) {
    process.stderr.write(`${command} ${args.join(' ')} failed\n`);
    process.exit(1);
  }
  return done.stdout;
}

function readTree(folder) {
  const files = readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name));
  return new Map(files.map((path) => [relative(folder, path), readFileSync(path)]));
}

function differences(checkedIn, fresh) {
  const names = new Set([...checkedIn.keys(), ...fresh.keys()]);
  return [...names].filter((name) => {
    const [a, b] = [checkedIn.get(name), fresh.get(name)];
    return a === undefined || b === undefined || !a.equals(b);
  });
}

function report(changed) {
  if (changed.length > 0) {
    const list = changed.map((name) => `  proto/gen/${name}\n`).join('');
    process.stderr.write(`not what the .proto files generate; run npm run gen:\n${list}`);
    process.exitCode = 1;
  }
}
