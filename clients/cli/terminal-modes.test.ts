import fc from 'fast-check';
import { expect, test } from 'vitest';
import { TerminalModes } from './terminal-modes.js';

function after(...outputs: readonly string[]): TerminalModes {
  const modes = new TerminalModes();
  for (const output of outputs) {
    modes.feed(Buffer.from(output, 'latin1'));
  }
  return modes;
}

test.each([
  ['entered', '\x1b[?1049h', true],
  ['entered among others', '\x1b[?25;1049;2004h', true],
  ['entered by an older name', '\x1b[?47h', true],
  ['entered and left', '\x1b[?1049hx\x1b[?1049l', false],
  ['entered and reset', '\x1b[?1049hx\x1bc', false],
  ['never entered', '\x1b[?25l\x1b[1;31mred', false],
  ['named in text only', '[?1049h', false],
])('the alternate screen is known to be %s', (_what, output, expected) => {
  expect(after(output).isAlternate).toBe(expected);
});

test('it is known however the output is cut', () => {
  const output = 'text\x1b[2J\x1b[?1049h\x1b[Hmore\x1b]0;title\x07';
  const cuts = fc.array(fc.integer({ min: 0, max: output.length }), { maxLength: 6 });
  fc.assert(
    fc.property(cuts, (places) => {
      const ordered = [0, ...places.sort((a, b) => a - b), output.length];
      const pieces = ordered.slice(1).map((end, at) => output.slice(ordered[at], end));
      expect(after(...pieces).isAlternate).toBe(true);
    }),
  );
});

test('the screen is left only when it was entered, and the cursor moved only when it was placed', () => {
  expect(after('plain').undo()).not.toContain('\x1b[?1049l');
  expect(after('plain\r\n').undo()).not.toContain('\r\n');
  expect(after('half a line').undo()).toMatch(/q\r\n$/);
  expect(after('\x1b[?1049h').undo()).toContain('\x1b[?1049l');
  expect(after('\x1b[5;5H').undo()).toMatch(/\r\n$/);
});

test.each([
  ['the mouse', '\x1b[?1000l'],
  ['the mouse, in every encoding', '\x1b[?1006l'],
  ['bracketed paste', '\x1b[?2004l'],
  ['the keypad', '\x1b>'],
  ['the cursor', '\x1b[?25h'],
  ['colours', '\x1b[0m'],
  ['focus reports', '\x1b[?1004l'],
])('%s is set right whatever came before', (_what, sequence) => {
  expect(after('').undo()).toContain(sequence);
  expect(after('\x1b[?1049h').undo()).toContain(sequence);
});

test('output that never ends a sequence is not kept', () => {
  const modes = after('\x1b[', '1'.repeat(5000), '\x1b[?1049h');
  expect(modes.isAlternate).toBe(true);
});
