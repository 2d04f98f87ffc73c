// Renews proto/baseline.binpb: the contract that `npm run gen:check` compares against.
// usage: node proto/baseline.mjs
//
// The image is the contract as others already rely on it, so it is checked in: compared with the main
// branch, a commit on main would be compared with itself. It is renewed with a release, in the commit
// that names the version; between releases only by a commit whose message has a line `Contract:` that
// says what breaks and for whom, with an entry under "Contract" in CHANGELOG.md.
import { spawnSync } from 'node:child_process';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const here = dirname(fileURLToPath(import.meta.url));
const done = spawnSync(
  join(here, '..', 'node_modules', '.bin', 'buf'),
  ['build', '--exclude-source-info', '-o', 'baseline.binpb'],
  { cwd: here, stdio: 'inherit' },
);
process.exitCode = done.status ?? 1;
