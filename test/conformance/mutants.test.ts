/** The comparison with the reference would notice: copies of the Python observer, each with one thing broken. */
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { needs } from '../stack/machine.js';
import { replaceOnce } from '../stack/mutant.js';
import { type Exchange, endings, looks, refusals } from './exchanges.js';
import { buildObserver, needsOf, type ObserverCommand, reference, sourcesOf } from './observers.js';
import { type Observed, Seat } from './seat.js';

const folder = mkdtempSync(join(tmpdir(), 'wh-mutants-'));
let theirs: Seat;
beforeAll(async () => {
  theirs = await Seat.open(reference);
});
afterAll(async () => {
  await theirs[Symbol.asyncDispose]();
  rmSync(folder, { recursive: true });
});

interface Mutant {
  readonly what: string;
  readonly file: string;
  readonly find: string;
  readonly replace: string;
  readonly exchange: Exchange;
}

const named = (all: readonly Exchange[], part: string): Exchange =>
  all.find(({ name }) => name.includes(part))!;

const mutants: readonly Mutant[] = [
  {
    what: 'takes bytes for text',
    file: 'presentation.py',
    find: 'yield Output(frame.seq, frame.payload)',
    replace: "yield Output(frame.seq, frame.payload.decode('utf8', 'replace').encode())",
    exchange: named(looks, 'comes in halves'),
  },
  {
    what: 'does not listen to Closed',
    file: 'presentation.py',
    find: 'self._close(response.closed)',
    replace: 'self._lose("over")',
    exchange: named(endings, 'the worker is closed'),
  },
  {
    what: 'loses the name of a refusal',
    file: 'failures.py',
    find: 'if refusal is not None:',
    replace: 'if False:',
    exchange: named(refusals, 'a closed worker'),
  },
];

test.for(mutants.map((mutant) => [mutant.what, mutant] as const))(
  'an observer that %s differs',
  async ([, mutant], context) => {
    needs(context, ...needsOf('python'));
    await using mine = await Seat.open(mutated(mutant));
    const [right, wrong] = await Promise.all([
      played(mutant.exchange, theirs),
      played(mutant.exchange, mine),
    ]);
    expect(right).toMatchObject({ code: mutant.exchange.code });
    expect(wrong).not.toEqual(right);
  },
);

/** The transcript; or, where the exchange itself has found fault with what was printed, the fault. */
async function played(
  { play }: Exchange,
  seat: Seat,
): Promise<Pick<Observed, 'transcript' | 'code'> | Error> {
  try {
    const { transcript, code } = await play(seat);
    return { transcript, code };
  } catch (error) {
    if (error instanceof Error && error.name === 'AssertionError') {
      return error;
    }
    throw error;
  }
}

function mutated({ file, find, replace }: Mutant): ObserverCommand {
  const sources = mkdtempSync(join(folder, 'mutant-'));
  cpSync(sourcesOf('python'), sources, { recursive: true });
  const path = join(sources, 'wheelhouse_observer', file);
  writeFileSync(path, replaceOnce(readFileSync(path, 'utf8'), find, replace, file));
  return buildObserver('python', folder, sources);
}
