import { expect, test } from 'vitest';
import { DetachKeys } from './detach-keys.js';

function asksToLeave(text: string): boolean {
  return new DetachKeys().feed(Buffer.from(text, 'latin1'));
}

test.each([
  ['q', 'q'],
  ['Ctrl-C', '\x03'],
  ['Ctrl-]', '\x1d'],
  ['q after other keys', 'hello q'],
  ['q after an arrow', '\x1b[Aq'],
  ['q after a function key', '\x1bOPq'],
  ['q after a mouse report', '\x1b[M !!q'],
  ['q after an answer that ends in BEL', '\x1b]11;rgb:00/00/00\x07q'],
  ['q after a paste', '\x1b[200~text\x1b[201~q'],
  ['q in the kitty protocol', '\x1b[113u'],
  ['q in the kitty protocol, with caps lock', '\x1b[113;65u'],
  ['Ctrl-C in the kitty protocol', '\x1b[99;5u'],
  ['Ctrl-] in the kitty protocol, held', '\x1b[93;5:2u'],
  ['Ctrl-C by modifyOtherKeys', '\x1b[27;5;99~'],
  ['Ctrl-C inside an unfinished answer', '\x1b]52;c;\x03'],
  ['Ctrl-C inside an unfinished paste', '\x1b[200~text\x03'],
])('%s leaves', (_what, bytes) => {
  expect(asksToLeave(bytes)).toBe(true);
});

test.each([
  ['another key', 'w'],
  ['Q', 'Q'],
  ['the style of the cursor, as an answer', '\x1bP1$r2 q\x1b\\'],
  ['a device’s attributes', '\x1b[?62;4;22c'],
  ['a colour', '\x1b]11;rgb:qqqq/qqqq/qqqq\x1b\\'],
  ['a version', '\x1bP>|quux(370)\x1b\\'],
  ['a mouse report of old, with q as a place', '\x1b[Mqqq'],
  ['alt and q', '\x1bq'],
  ['the release of q', '\x1b[113;1:3u'],
  ['super and q', '\x1b[113;9u'],
  ['pasted text', '\x1b[200~quit\x1b[201~'],
  ['pasted text with sequences', '\x1b[200~\x1b[113u q \x1b[201~'],
])('%s does not', (_what, bytes) => {
  expect(asksToLeave(bytes)).toBe(false);
});

test('a sequence cut anywhere means the same', () => {
  const bytes = Buffer.from('\x1bP1$r2 q\x1b\\\x1b[Mqqq\x1b[200~q\x1b[201~\x1b[113u', 'latin1');
  for (let cut = 0; cut < bytes.length; cut += 1) {
    const keys = new DetachKeys();
    const first = keys.feed(bytes.subarray(0, cut));
    expect([first, keys.feed(bytes.subarray(cut))]).toEqual([false, true]);
  }
});
