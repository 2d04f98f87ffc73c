#!/usr/bin/env -S node --
/** The process: parses, acts, says how it ended. */
import { readFileSync } from 'node:fs';
import { CommanderError } from 'commander';
import { EXIT_BUG, EXIT_DONE, EXIT_NOT_THE_PROGRAMS, EXIT_USAGE } from './exit-codes.js';
import { buildProgram } from './program.js';

/** A reader that takes nothing more does not keep the process. */
const FLUSH_MS = 2_000;

const ending = { exitCode: EXIT_DONE };

// Whoever reads our output may leave at any time; commands that care listen themselves.
process.stdout.on('error', () => undefined);
process.stderr.on('error', () => undefined);

try {
  await buildProgram(ending, version()).parseAsync();
} catch (error) {
  ending.exitCode = usageExitCode(error);
}
await flushed();
process.exit(ending.exitCode);

/** The package stands two folders above the compiled output. */
function version(): string {
  const path = new URL('../../../package.json', import.meta.url);
  return String(Object(JSON.parse(readFileSync(path, 'utf8'))).version);
}

/** Help and version end well; anything else commander ends is usage, and the rest is a bug. */
function usageExitCode(error: unknown): number {
  if (!(error instanceof CommanderError)) {
    process.stderr.write(`bug: ${error instanceof Error ? error.stack : String(error)}\n`);
    return isRun() ? EXIT_NOT_THE_PROGRAMS : EXIT_BUG;
  }
  if (error.exitCode === 0) {
    return EXIT_DONE;
  }
  return isRun() ? EXIT_NOT_THE_PROGRAMS : EXIT_USAGE;
}

/** Whatever of `run` is not the program's is 125, usage too. */
function isRun(): boolean {
  const valued = ['--state', '--as'];
  const words = process.argv.slice(2);
  return (
    words.find((word, at) => !word.startsWith('-') && !valued.includes(words[at - 1] ?? '')) ===
    'run'
  );
}

async function flushed(): Promise<void> {
  await Promise.race([
    Promise.all([drained(process.stdout), drained(process.stderr)]),
    new Promise((resolve) => setTimeout(resolve, FLUSH_MS)),
  ]);
}

function drained(stream: NodeJS.WriteStream): Promise<void> {
  return new Promise((resolve) => {
    if (stream.writableLength === 0 || stream.errored !== null) {
      resolve();
    } else {
      stream.write('', () => resolve());
    }
  });
}
