/** Programs in the terminals of a deployment: what they cannot read, and that none outlives its run. */
import { readdirSync, readFileSync } from 'node:fs';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { eventually } from '../stack/eventually.js';
import { hasTool, needs } from '../stack/machine.js';
import { bringUp, type Deployment } from './deployment.js';

let deployment: Deployment;

beforeAll(async () => {
  if (hasTool('docker')) {
    deployment = await bringUp();
    await deployment.cli(['worker', 'open', 'prober']);
  }
});
afterAll(async () => {
  await deployment?.[Symbol.asyncDispose]();
});
beforeEach((context) => needs(context, 'docker'));

/** Tries everything that another user's files and processes could give away; prints what did. */
const PROBE = `
own=$(id -u)
leak() { echo "LEAK $*"; }
looked=0
for file in $(find / -xdev \\( -path /proc -o -path /sys \\) -prune -o -type f \\( -name '*.key' -o -name '*.seed' -o -name '*.sqlite*' -o -name 'root.crt' \\) -print 2>/dev/null); do
  head -c1 "$file" >/dev/null 2>&1 && leak "$file"
done
for path in /var/lib/wheelhouse /var/lib/wheelhouse/ca/root.key /var/lib/wheelhouse/identities/service/data.local.key /root; do
  { ls "$path" || cat "$path"; } >/dev/null 2>&1 && leak "$path"
done
for process in /proc/[0-9]*; do
  pid=\${process#/proc/}
  [ "$(stat -c %u "$process" 2>/dev/null)" = "$PROBED_UID" ] || continue
  [ "$pid" = "$$" ] && continue
  looked=$((looked + 1))
  for name in environ maps auxv; do cat "$process/$name" >/dev/null 2>&1 && leak "$name of another user's process"; done
  for name in fd task/$pid/fd map_files; do ls "$process/$name" >/dev/null 2>&1 && leak "$name of another user's process"; done
  for name in root cwd exe; do readlink "$process/$name" >/dev/null 2>&1 && leak "$name of another user's process"; done
  head -c1 "$process/mem" >/dev/null 2>&1 && leak 'memory'
  kill -0 "$pid" 2>/dev/null && leak 'signals'
done
echo "looked at $looked processes"
`;

test('a program in a terminal reads no key and nothing of a service', async () => {
  const env = ['-e', 'PROBED_UID=0'];
  const { code, stdout } = await deployment.cli([
    'run',
    'prober',
    ...env,
    '--',
    'bash',
    '-c',
    PROBE,
  ]);
  const lines = String(stdout).split('\r\n');
  expect([code, lines.filter((line) => line.startsWith('LEAK'))]).toEqual([0, []]);
  // The init, the reaper and data.
  expect(Number(/looked at (\d+) processes/.exec(String(stdout))?.[1])).toBeGreaterThanOrEqual(3);
});

test('the same program, as the user of the service, finds all of it: the probe can find', async () => {
  const env = ['env', 'PROBED_UID=0'];
  const { stdout } = await deployment.exec('data', ...env, 'bash', '-c', PROBE);
  const found = new Set(stdout.split('\n').filter((line) => line.startsWith('LEAK')));
  expect([...found]).toEqual(
    expect.arrayContaining([
      'LEAK /var/lib/wheelhouse/identities/service/data.local.key',
      "LEAK environ of another user's process",
      'LEAK signals',
    ]),
  );
});

test('a program in a terminal has its terminal open and nothing else, and no right to gain', async () => {
  const script =
    'readlink /proc/$$/fd/*; grep -E "^(Uid|Groups|Cap|NoNewPrivs)" /proc/self/status; env';
  const { stdout } = await deployment.cli(['run', 'prober', '--', 'bash', '-c', script]);
  const lines = String(stdout).trim().split('\r\n');
  const open = lines.filter((line) => line.startsWith('/') || /^[a-z_]+:\[/.test(line));
  expect(new Set(open.map((path) => path.replace(/\d+$/, 'N')))).toEqual(new Set(['/dev/pts/N']));
  expect(lines).toEqual(expect.arrayContaining(['NoNewPrivs:\t1', 'CapEff:\t0000000000000000']));
  expect(lines).toContain('CapPrm:\t0000000000000000');
  expect(lines).toContain('Uid:\t10001\t10001\t10001\t10001');
  expect(lines.find((line) => line.startsWith('Groups:'))?.trim()).toMatch(/^Groups:(\s+10001)?$/);
  expect(lines.filter((line) => line.startsWith('WHEELHOUSE_'))).toEqual([]);
});

/** A child that no hang-up ends, left behind. */
function deaf(seconds: number, prefix = ''): string {
  return `${prefix} bash -c "trap '' HUP TERM INT; exec sleep ${seconds}" & `;
}

test('a child that ignores hang-ups ends with the run', async () => {
  const script = `${deaf(86_401)} sleep 0.3; pgrep -u agent -a`;
  const { stdout } = await deployment.cli(['run', 'prober', '--', 'bash', '-c', script]);
  expect(String(stdout)).toContain('sleep 86401');
  await eventually('the child has ended', async () => {
    const { stdout: left } = await deployment.exec('data', 'pgrep', '-u', 'agent', '-a');
    return left === '';
  });
});

test('children that ignore hang-ups, out of the session too, end with the container, which stops in time', async () => {
  const script = `${deaf(86_402)} ${deaf(86_402, 'setsid')} sleep 86402`;
  await deployment.cli(['run', 'prober', '-d', '--headless', '--', 'bash', '-c', script]);
  await eventually('all three are there', () => sleeping(86_402) === 3);
  const since = performance.now();
  await deployment.compose('stop', 'data');
  // Its drain is 5 s at most; the engine would wait 15.
  expect(performance.now() - since).toBeLessThan(12_000);
  expect(sleeping(86_402)).toBe(0);
});

/** How many processes of this machine sleep that long: a container's are its own as well. */
function sleeping(seconds: number): number {
  return readdirSync('/proc').filter((pid) => {
    try {
      return readFileSync(`/proc/${pid}/cmdline`, 'utf8') === `sleep\0${seconds}\0`;
    } catch {
      return false;
    }
  }).length;
}
