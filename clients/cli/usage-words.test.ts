import { CommanderError } from 'commander';
import { expect, test } from 'vitest';
import { buildProgram } from './program.js';
import { isNameless, silenceUsage, usageHint, usageValue, wantsJson } from './usage-words.js';

async function failureOf(words: readonly string[]): Promise<CommanderError> {
  const program = buildProgram({ exitCode: 0 }, '1.2.3');
  silenceUsage(program);
  try {
    await program.parseAsync(words, { from: 'user' });
  } catch (error) {
    if (error instanceof CommanderError) {
      return error;
    }
  }
  throw new Error('it was taken');
}

test.each([
  ['run foo ls -la', 'wheelhouse run foo -- ls -la'],
  ['run foo', 'wheelhouse run foo -- COMMAND'],
  ['--state /tmp/x run', 'wheelhouse run NAME -- COMMAND'],
  ['run -- ls', 'before --, as: wheelhouse run NAME -- ls'],
  ['run foo --', 'nothing stands after --'],
  ['help nosuch', 'there is no command "nosuch"'],
])('%s is explained', async (line, words) => {
  const given = line.split(' ');
  expect(usageHint(await failureOf(given), given)).toContain(words);
});

test.each(['watch', 'run foo --bogus -- ls', 'nosuch'])('%s needs no hint', async (line) => {
  const given = line.split(' ');
  expect(usageHint(await failureOf(given), given)).toBeUndefined();
});

test('programs are told usage as one value', async () => {
  const usageOf = async (...words: string[]): Promise<unknown> =>
    usageValue(await failureOf(words), words);
  expect(await usageOf('--json')).toEqual({ usage: 'a command is missing; --help lists them' });
  expect(await usageOf('--json', 'nosuch')).toEqual({ usage: "unknown command 'nosuch'" });
  expect(await usageOf('run', '--json', '--', 'ls')).toMatchObject({
    usage: expect.stringMatching(/^missing required argument .*; the worker’s name/),
  });
});

test('--json is ours before -- and the program’s after it', () => {
  expect(wantsJson(['run', 'foo', '--json', '--', 'ls'])).toBe(true);
  expect(wantsJson(['run', 'foo', '--', 'ls', '--json'])).toBe(false);
});

test('a program is not taken for the worker it should run at', () => {
  expect(isNameless(['ls', '-l'], ['run', '-e', 'A', '--', 'ls', '-l'])).toBe(true);
  expect(isNameless(['foo', 'ls'], ['run', 'foo', '--', 'ls'])).toBe(false);
  expect(isNameless(['foo', 'ls'], ['run', 'foo', 'ls'])).toBe(false);
});
