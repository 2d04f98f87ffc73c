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

/** Reads a file of additions, one `NAME=VALUE` a line, quotes and comments as dotenv has them. */
export function parseEnvFile(text: string): Environment {
  const entries = Object.entries(parseEnv(text));
  return Object.fromEntries(
    entries.flatMap(([name, value]) => (value === undefined ? [] : [[name, value]])),
  );
}
