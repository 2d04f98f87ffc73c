/** Usage that commander refuses: for programs as a value, and for people with what they may have meant. */
import type { Command, CommanderError } from 'commander';

const VALUED = ['--state', '--as'];

/** The first word that is neither an option nor the value of one that stands before the command. */
export function commandIndex(words: readonly string[]): number {
  return words.findIndex(
    (word, at) => !word.startsWith('-') && !VALUED.includes(words[at - 1] ?? ''),
  );
}

/** Whether --json was asked for; what stands after `--` is not ours. */
export function wantsJson(words: readonly string[]): boolean {
  const end = words.indexOf('--');
  return words.slice(0, end === -1 ? words.length : end).includes('--json');
}

/** Commander prints nothing by itself any more: a program reads one value. */
export function silenceUsage(command: Command): void {
  command.configureOutput({ writeErr: () => undefined });
  for (const child of command.commands) {
    silenceUsage(child);
  }
}

/** For `--json`: the problem and the hint in one sentence. */
export function usageValue(error: CommanderError, words: readonly string[]): { usage: string } {
  const hint = usageHint(error, words);
  if (error.code === 'commander.help') {
    return { usage: hint ?? 'a command is missing; --help lists them' };
  }
  const problem = error.message.replace(/^error: /, '');
  return { usage: hint === undefined ? problem : `${problem}; ${hint}` };
}

/** What the person may have meant; undefined when there is nothing to add. */
export function usageHint({ code }: CommanderError, words: readonly string[]): string | undefined {
  const at = commandIndex(words);
  const rest = words.slice(at + 1);
  if (code === 'commander.help' && words[at] === 'help' && rest.length > 0) {
    return `there is no command ${JSON.stringify(rest.join(' '))}; wheelhouse --help lists them`;
  }
  return words[at] === 'run' ? runHint(code, rest) : undefined;
}

/** `run NAME -- COMMAND`, where one of the three is not there. */
function runHint(code: string, rest: readonly string[]): string | undefined {
  const dashes = rest.indexOf('--');
  const isMissing = code === 'commander.missingArgument';
  if (dashes === -1 && (isMissing || code === 'commander.unknownOption')) {
    const nameAt = rest.findIndex((word) => !word.startsWith('-'));
    const name = rest[nameAt] ?? 'NAME';
    const command = nameAt === -1 ? [] : rest.slice(nameAt + 1);
    const shown = command.length === 0 ? 'COMMAND' : command.join(' ');
    return `the program stands after --, as: wheelhouse run ${name} -- ${shown}`;
  }
  if (dashes === -1 || !isMissing) {
    return undefined;
  }
  return dashes === rest.length - 1
    ? 'nothing stands after --: the program and its arguments do'
    : namelessHint(rest);
}

/** What stands after `--` is all there is: the worker's name is not there. */
export function namelessHint(words: readonly string[]): string {
  const command = words.slice(words.indexOf('--') + 1).join(' ');
  return `the worker’s name stands before --, as: wheelhouse run NAME -- ${command}`;
}

/** Whether what commander took for the name is the program. */
export function isNameless(operands: readonly string[], words: readonly string[]): boolean {
  const dashes = words.indexOf('--');
  return dashes !== -1 && words.length - dashes - 1 === operands.length;
}
