#!/usr/bin/env -S node --
/** The process: parses, acts, says how it ended. */
import { readFileSync } from 'node:fs';
import { CommanderError } from 'commander';
import { EXIT_BUG, EXIT_DONE, EXIT_NOT_THE_PROGRAMS, EXIT_USAGE } from './exit-codes.js';
import { buildProgram } from './program.js';
import { commandIndex, silenceUsage, usageHint, usageValue, wantsJson } from './usage-words.js';

/** A reader that takes nothing more does not keep the process. */
const FLUSH_MS = 2_000;

const ending = { exitCode: EXIT_DONE };

// Whoever reads our output may leave at any time; commands that care listen themselves.
process.stdout.on('error', () => undefined);
process.stderr.on('error', () => undefined);

const words = process.argv.slice(2);

try {
  const program = buildProgram(ending, version());
  if (wantsJson(words)) {
    silenceUsage(program);
  }
  await program.parseAsync();
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
  explainUsage(error);
  return isRun() ? EXIT_NOT_THE_PROGRAMS : EXIT_USAGE;
}

/** Commander has told people the problem already, and programs nothing. */
function explainUsage(error: CommanderError): void {
  const hint = usageHint(error, words);
  if (wantsJson(words)) {
    process.stderr.write(`${JSON.stringify(usageValue(error, words))}\n`);
  } else if (hint !== undefined) {
    process.stderr.write(`${hint}\n`);
  }
}

/** Whatever of `run` is not the program's is 125, usage too. */
function isRun(): boolean {
  return words[commandIndex(words)] === 'run';
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
