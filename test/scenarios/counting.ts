/**
 * A program whose every byte says where it stands: numbered lines of sixteen bytes, as fast as they go.
 *
 * What a reader was given is compared with what stands between two positions, from wherever it began.
 */
import { createHash } from 'node:crypto';

const LINE_BYTES = 16;
/** Fifteen digits, as all that follow for longer than anybody waits. */
const FIRST_LINE = 100_000_000_000_000;
const BLOCK_LINES = 4096;
const [ZERO, NINE] = Buffer.from('09');

/** For a shell whose terminal is raw; what it becomes is this one process. */
export const counting = 'exec seq 100000000000000 999999999999999';

/** The same at about 1 MB/s: a thousand lines, sixty times a second. */
export const countingSlowly = [
  'python3',
  '-c',
  `import os, time, tty
tty.setraw(0)
line = ${FIRST_LINE}
while True:
    block = b"".join(b"%d\\n" % (line + each) for each in range(1000))
    line += 1000
    while block:
        block = block[os.write(1, block):]
    time.sleep(1 / 60)
`,
];

/** The hash of what stands at a position and the bytes after it. */
export function countedSha256(fromSeq: bigint, bytes: bigint): string {
  const hash = createHash('sha256');
  const skip = Number(fromSeq % BigInt(LINE_BYTES));
  let left = Number(bytes) + skip;
  let start = skip;
  for (const block of blocksFrom(Number(fromSeq / BigInt(LINE_BYTES)))) {
    const end = Math.min(left, block.length);
    hash.update(block.subarray(start, end));
    left -= end;
    start = 0;
    if (left === 0) {
      break;
    }
  }
  return hash.digest('hex');
}

/** Where a piece begins that knows no positions: read off the first whole line in it. */
export function positionOf(piece: Buffer): bigint {
  const lineAt = piece.indexOf('\n') + 1;
  const line = Number(piece.toString('latin1', lineAt, lineAt + LINE_BYTES - 1));
  return BigInt((line - FIRST_LINE) * LINE_BYTES - lineAt);
}

/** One buffer, written anew for each block. */
function* blocksFrom(line: number): Generator<Buffer> {
  const block = Buffer.alloc(BLOCK_LINES * LINE_BYTES);
  const next = Buffer.from(`${FIRST_LINE + line}\n`);
  for (;;) {
    for (let at = 0; at < block.length; at += LINE_BYTES) {
      next.copy(block, at);
      increment(next);
    }
    yield block;
  }
}

function increment(line: Buffer): void {
  let digit = LINE_BYTES - 2;
  for (; line[digit] === NINE; digit -= 1) {
    line[digit] = ZERO ?? 0;
  }
  line[digit] = (line[digit] ?? 0) + 1;
}
