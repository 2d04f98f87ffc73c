/** Reads TypeScript as text: what it imports, and what of it is code. */

/** The text with comments, and the insides of strings, replaced by spaces. */
export function codeOf(text: string): string {
  return blank(text, true);
}

/** What a file imports, types included. */
export interface Import {
  readonly specifier: string;
  readonly isTypeOnly: boolean;
}

const STATIC = /^\s*(import|export)\s+(type\s+)?[^;'"]*?\bfrom\s*'([^']+)'/gm;
const BARE = /^\s*import\s*'([^']+)'/gm;
const DYNAMIC = /\bimport\(\s*'([^']+)'/g;

/** Every import of a file, in its own spelling. */
export function importsOf(text: string): readonly Import[] {
  const code = blank(text, false);
  return [
    ...[...code.matchAll(STATIC)].map(([, , type, specifier]) => ({
      specifier: specifier ?? '',
      isTypeOnly: type !== undefined,
    })),
    ...[...code.matchAll(BARE), ...code.matchAll(DYNAMIC)].map(([, specifier]) => ({
      specifier: specifier ?? '',
      isTypeOnly: false,
    })),
  ];
}

type Mode = 'code' | 'line' | 'block' | "'" | '"' | '`';

/** A template's `${…}` counts as string: what a rule looks for does not hide there. */
function blank(text: string, hideStrings: boolean): string {
  let mode: Mode = 'code';
  let out = '';
  for (let at = 0; at < text.length; at += 1) {
    const char = text[at] ?? '';
    const next = nextMode(mode, text, at);
    const isHidden = isComment(mode) || isComment(next) || (hideStrings && mode !== 'code');
    out += isHidden && char !== '\n' ? ' ' : char;
    if (isQuote(mode) && char === '\\') {
      at += 1;
      out += hideStrings ? ' ' : (text[at] ?? '');
    } else if (mode === 'block' && next === 'code') {
      at += 1;
      out += ' ';
    }
    mode = next;
  }
  return out;
}

function isComment(mode: Mode): boolean {
  return mode === 'line' || mode === 'block';
}

function isQuote(mode: Mode): boolean {
  return mode === "'" || mode === '"' || mode === '`';
}

function nextMode(mode: Mode, text: string, at: number): Mode {
  const char = text[at];
  if (mode === 'code') {
    const pair = text.slice(at, at + 2);
    if (pair === '//') {
      return 'line';
    }
    if (pair === '/*') {
      return 'block';
    }
    return char === "'" || char === '"' || char === '`' ? char : 'code';
  }
  if (mode === 'line') {
    return char === '\n' ? 'code' : 'line';
  }
  if (mode === 'block') {
    return text.slice(at, at + 2) === '*/' ? 'code' : 'block';
  }
  return char === mode ? 'code' : mode;
}
