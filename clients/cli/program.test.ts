import { type Command, CommanderError } from 'commander';
import { expect, test } from 'vitest';
import { buildProgram } from './program.js';

/** Every command, with the words that lead to it. */
function commandsOf(command: Command, path: readonly string[] = []): [string, Command][] {
  return command.commands.flatMap((child) => {
    const words = [...path, child.name()];
    return [[words.join(' '), child] as [string, Command], ...commandsOf(child, words)];
  });
}

function helpOf(command: Command): string {
  const parts: string[] = [];
  command.configureOutput({ writeOut: (part) => void parts.push(part) });
  command.outputHelp();
  return parts.join('');
}

const program = buildProgram({ exitCode: 0 }, '1.2.3');
const ours = commandsOf(program).filter(([path]) => !/help|complete|detached-run/.test(path));

test('every command is there', () => {
  expect(ours.map(([path]) => path)).toEqual([
    'up',
    'down',
    'status',
    'doctor',
    'worker',
    'worker open',
    'worker close',
    'worker reopen',
    'worker list',
    'run',
    'watch',
    'identity',
    'identity list',
    'identity issue',
    'demo',
  ]);
});

test.each(ours)('the help of %s shows an example of it', (path, command) => {
  expect(helpOf(command)).toContain('Examples:');
  expect(helpOf(command)).toMatch(new RegExp(`wheelhouse.* ${path.split(' ')[0]}|npm start`));
});

test.each([
  ['no command', []],
  ['an unknown command', ['nosuch']],
  ['an unknown option', ['watch', 'demo', '--bogus']],
  ['a missing name', ['watch']],
  ['a missing program', ['run', 'demo', '--']],
  ['a generation that is none', ['watch', 'demo', '--generation', '0']],
  ['a hold that is too long', ['watch', 'demo', '--hold-limit', '31']],
  ['a hold that is none', ['watch', 'demo', '--hold-limit', 'x']],
  ['a size that is none', ['run', 'demo', '--size', '80', '--', 'ls']],
  ['a variable that is none', ['run', 'demo', '-e', '1A', '--', 'ls']],
  ['a file that is not there', ['run', 'demo', '--env-file', '/no/such', '--', 'ls']],
  ['a bus that is none', ['up', '--bus', 'carrier-pigeon']],
])('%s is usage', async (_what, words) => {
  const quiet = buildProgram({ exitCode: 0 }, '1.2.3');
  for (const [, command] of [['', quiet] as const, ...commandsOf(quiet)]) {
    command.configureOutput({ writeErr: () => undefined, writeOut: () => undefined });
  }
  await expect(quiet.parseAsync(words, { from: 'user' })).rejects.toBeInstanceOf(CommanderError);
});
