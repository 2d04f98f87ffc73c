import { expect, test } from 'vitest';
import { RefusedError, UnreachableError } from '#client/call-errors.js';
import { exitCodeOf, programExitCode, runExitCodeOf, UsageError } from './exit-codes.js';

const refused = new RefusedError({ reason: 'LOCUS_OCCUPIED', facts: {} });
const unreachable = new UnreachableError('authority', 'gone');
const spawnFailed = (cause: string): RefusedError =>
  new RefusedError({ reason: 'SPAWN_FAILED', facts: { cause, file: 'x' } });

test.each([
  ['nonsense', new UsageError('x'), 2, 125],
  ['a named no', refused, 3, 125],
  ['no answer', unreachable, 4, 125],
  ['a command that is not there', spawnFailed('not-found'), 3, 127],
  ['a command that cannot be executed', spawnFailed('not-executable'), 3, 126],
  ['a command that failed otherwise', spawnFailed('no-workspace'), 3, 125],
  [
    'the machine’s no',
    Object.assign(new Error('EACCES'), { code: 'EACCES', syscall: 'open' }),
    4,
    125,
  ],
  ['a bug', new TypeError('x'), undefined, undefined],
])('%s', (_what, error, ordinary, ofRun) => {
  expect(exitCodeOf(error)).toBe(ordinary);
  expect(runExitCodeOf(error)).toBe(ofRun);
});

test('the program’s own code, or 128 and its signal', () => {
  expect(programExitCode({ kind: 'code', code: 7 })).toBe(7);
  expect(programExitCode({ kind: 'signal', signal: 9 })).toBe(137);
});
