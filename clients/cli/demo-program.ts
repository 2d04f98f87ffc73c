/**
 * What the demo's agent works at: a picture that repaints itself ten times a second until it is ended.
 *
 * A program of its own, in a terminal of its own. Each frame begins at the top left and leaves nothing
 * of the one before, so a look that begins at any moment is whole after one frame.
 */
const FRAME_MS = 100;
const SPOKES = ['|', '/', '-', '\\'];
/** Where a frame begins: what a reader may cut the stream at. */
const HOME = '\x1b[H';
const LINE_END = '\x1b[K\n';
const REST = '\x1b[J';

const startedAt = Date.now();
let frame = 0;

process.stdout.write('\x1b[?25l\x1b[2J');
setInterval(paint, FRAME_MS);
paint();

for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
  process.on(signal, () => {
    process.stdout.write(`\x1b[?25h\x1b[0m\r\n`);
    process.exitCode = 0;
    setImmediate(() => process.exit());
  });
}

function paint(): void {
  const { columns = 80, rows = 24 } = process.stdout;
  const lines = picture(columns).slice(0, rows - 1);
  process.stdout.write(HOME + lines.map((line) => line + LINE_END).join('') + REST);
  frame += 1;
}

function picture(columns: number): readonly string[] {
  const width = Math.max(20, Math.min(columns - 4, 60));
  const seconds = Math.floor((Date.now() - startedAt) / 1000);
  const spoke = SPOKES[Math.floor(frame / 2) % SPOKES.length] ?? '|';
  const swing = (width - 3) / 2;
  const place = Math.round(swing + swing * Math.sin(frame / 12));
  const done = Math.floor(((frame % 120) / 120) * width);
  return [
    '',
    `  \x1b[1mWheelhouse demo\x1b[0m  agent demo at work, process ${process.pid}`,
    '',
    `  ${new Date().toLocaleTimeString('en-GB')}   up ${seconds} s   frame ${frame}`,
    '',
    `  ${' '.repeat(place)}\x1b[36m(${spoke})\x1b[0m`,
    `  \x1b[2m${'~'.repeat(width)}\x1b[0m`,
    '',
    `  \x1b[32m${'#'.repeat(done)}\x1b[2m${'.'.repeat(width - done)}\x1b[0m`,
    '',
    '  This is a real program in a real terminal. It repaints by itself;',
    '  you see it through a presentation, and it goes on when you look away.',
  ];
}
