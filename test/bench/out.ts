/**
 * OUT: a raw-mode terminal prints a fixed file; MB/s from the first byte to the last.
 *
 * Wheelhouse, ssh and a C reader take turns, so that what else the machine does falls on all alike.
 */
import { execFileSync } from 'node:child_process';
import { createHash, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { locate } from '../stack/machine.js';
import { ownDist } from '../stack/stack-home.js';
import { ReaderProcess } from './reader-process.js';
import { median, type Row, row, type Terms } from './row.js';
import { Scene } from './scene.js';
import { SshPeer } from './ssh-peer.js';

interface Sample {
  readonly bytes: number;
  readonly ms: number;
}

export async function out({ isSmoke, say }: Terms): Promise<readonly Row[]> {
  const folder = mkdtempSync(join(tmpdir(), 'wh-bench-'));
  try {
    const file = makeFile(folder, isSmoke ? 2_000_000 : 100_000_000);
    const roundCount = isSmoke ? 1 : 7;
    await using scene = await Scene.open();
    await using ssh = await SshPeer.start(say);
    const reader = compileReader(folder, say);
    const samples = { wheelhouse: [], ssh: [], c: [] } as Record<string, number[]>;
    const lost = [await throughWheelhouse(scene, file, 'warm', '--hash')].map(
      ({ bytes, sha256 }) => (sha256 === file.sha256 ? 0 : Math.max(1, file.bytes - bytes)),
    );
    for (let round = 0; round < roundCount; round += 1) {
      const ours = await throughWheelhouse(scene, file, `round-${round}`);
      lost.push(file.bytes - ours.bytes);
      samples['wheelhouse']?.push(speedOf(ours));
      if (ssh !== undefined) {
        samples['ssh']?.push(speedOf(await throughSsh(ssh, file)));
      }
      if (reader !== undefined) {
        samples['c']?.push(speedOf(throughC(reader, file)));
      }
      const shown = Object.entries(samples).map(
        ([name, all]) => `${name} ${all.at(-1)?.toFixed(1)}`,
      );
      say(`out round ${round + 1}: ${shown.join(', ')} MB/s`);
    }
    const ours = median(samples['wheelhouse'] ?? []);
    const peer = (name: string): number | undefined =>
      samples[name]?.length === 0 ? undefined : median(samples[name] ?? []);
    return [
      row('out, beside ssh -tt', 'MB/s', ours, peer('ssh')),
      row('out, beside a C reader', 'MB/s', ours, peer('c')),
      row(
        'out, bytes lost or changed',
        'bytes',
        lost.reduce((a, b) => a + b),
      ),
    ];
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

interface BenchFile {
  readonly path: string;
  readonly bytes: number;
  readonly sha256: string;
}

function makeFile(folder: string, bytes: number): BenchFile {
  const path = join(folder, 'text');
  const text = Buffer.alloc(bytes, `${randomBytes(768 * 1024).toString('base64')}\n`);
  writeFileSync(path, text);
  return { path, bytes, sha256: createHash('sha256').update(text).digest('hex') };
}

/** The look begins before the program does: a fifo holds it back until then. */
async function throughWheelhouse(
  scene: Scene,
  file: BenchFile,
  name: string,
  ...flags: readonly '--hash'[]
) {
  const fifo = join(dirname(file.path), `start-${name}`);
  execFileSync('mkfifo', [fifo]);
  const worker = await scene.open(name);
  const command = `stty raw -echo; read -r _ < ${fifo}; exec cat ${file.path}`;
  const possession = await scene.run(worker, command);
  await using reader = await ReaderProcess.open(scene, worker, ...flags);
  writeFileSync(fifo, '\n');
  const seen = await reader.seen();
  await possession.ended;
  await scene.workers.close(worker);
  return seen;
}

async function throughSsh(ssh: SshPeer, file: BenchFile): Promise<Sample> {
  const child = ssh.run(`stty raw -echo; exec cat ${file.path}`);
  let bytes = 0;
  let firstMs = 0;
  let lastMs = 0;
  child.stdout?.on('data', (chunk: Buffer) => {
    lastMs = performance.now();
    firstMs ||= lastMs;
    bytes += chunk.length;
  });
  await once(child, 'close');
  return { bytes, ms: lastMs - firstMs };
}

function compileReader(folder: string, say: (line: string) => void): string | undefined {
  if (locate('cc') === undefined) {
    say('no C compiler on this machine: the row beside a C reader is without it');
    return undefined;
  }
  const source = join(dirname(ownDist), 'test', 'bench', 'pty-reader.c');
  const program = join(folder, 'pty-reader');
  execFileSync('cc', ['-O2', '-o', program, source, '-lutil']);
  return program;
}

function throughC(reader: string, file: BenchFile): Sample {
  const printed = execFileSync(reader, [`stty raw -echo; exec cat ${file.path}`]).toString();
  const [bytes, seconds] = printed.split(' ').map(Number);
  return { bytes: bytes ?? 0, ms: (seconds ?? Number.NaN) * 1000 };
}

/** MB/s, or NaN for a sample that is not whole. */
function speedOf({ bytes, ms }: Sample): number {
  return bytes / 1e3 / ms;
}
