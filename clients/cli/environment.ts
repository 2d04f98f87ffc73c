/** What `run` adds to a program's clean environment. */
import { parseEnv } from 'node:util';

export type Environment = Readonly<Record<string, string>>;

/** The first character that is no digit, then letters, digits and underscores, as shells have it. */
const NAME = /^[A-Za-z_][A-Za-z0-9_]*$/;

/**
 * Reads `-e NAME=VALUE` and `-e NAME`, which copies the caller's own and adds nothing when it has none.
 * Undefined when the name is none.
 */
export function parseAddition(
  text: string,
  caller: Readonly<Record<string, string | undefined>>,
): Environment | undefined {
  const equals = text.indexOf('=');
  const name = equals === -1 ? text : text.slice(0, equals);
  if (!NAME.test(name)) {
    return undefined;
  }
  const value = equals === -1 ? caller[name] : text.slice(equals + 1);
  return value === undefined ? {} : { [name]: value };
}

/** A file of additions says something else than additions. */
export class EnvFileError extends Error {
  override readonly name = 'EnvFileError';
}

/**
 * Reads a file of additions, one `NAME=VALUE` a line, quotes and comments as dotenv has them.
 * Throws an `EnvFileError` that names the line: what dotenv leaves out in silence is a mistake here.
 */
export function parseEnvFile(text: string): Environment {
  checkNames(text.split(/\r?\n/));
  const entries = Object.entries(parseEnv(text));
  return Object.fromEntries(
    entries.flatMap(([name, value]) => (value === undefined ? [] : [[name, value]])),
  );
}

function checkNames(lines: readonly string[]): void {
  for (let at = 0; at < lines.length; at += 1) {
    const line = lines[at]?.trim() ?? '';
    if (line !== '' && !line.startsWith('#')) {
      const [, name = line, value = ''] = /^(?:export\s+)?([^=]*?)\s*=\s*(.*)$/.exec(line) ?? [];
      if (!NAME.test(name) || !line.includes('=')) {
        throw new EnvFileError(`line ${at + 1}: ${JSON.stringify(name)} is not NAME=VALUE`);
      }
      at += linesQuotedAfter(value, lines.slice(at + 1));
    }
  }
}

/** How many of the lines after it belong to a value whose quote is still open. */
function linesQuotedAfter(value: string, rest: readonly string[]): number {
  const [quote = ''] = value;
  if (!['"', "'", '`'].includes(quote) || value.indexOf(quote, 1) !== -1) {
    return 0;
  }
  return rest.findIndex((line) => line.includes(quote)) + 1;
}
