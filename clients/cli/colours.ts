/** Colours, where a person looks at a terminal and has not said NO_COLOR. */
export interface Colours {
  bold(text: string): string;
  dim(text: string): string;
  good(text: string): string;
  warn(text: string): string;
  bad(text: string): string;
}

export function coloursFor(
  stream: { readonly isTTY?: boolean },
  env: Readonly<Record<string, string | undefined>>,
): Colours {
  const isPlain = stream.isTTY !== true || Boolean(env['NO_COLOR']) || env['TERM'] === 'dumb';
  const paint = (code: number) => (text: string) =>
    isPlain ? text : `\x1b[${code}m${text}\x1b[0m`;
  return { bold: paint(1), dim: paint(2), good: paint(32), warn: paint(33), bad: paint(31) };
}
