/**
 * Which lasting modes watched output has put the operator's terminal into, and how to undo them.
 *
 * Most are undone whether they were set or not: undoing what was never set does nothing. Leaving
 * the alternate screen moves the cursor, so that is done only when it was entered.
 */
const ESC = 0x1b;
const LF = 0x0a;
const CR = 0x0d;
/** A sequence that is longer is no mode change, and is not waited for. */
const SEQUENCE_MAX = 64;
const ALTERNATE_SCREENS = ['47', '1047', '1049'];

/** Ends what may be half written: CAN a control sequence, ST a string. */
const FINISH = '\x18\x1b\\';

/** Pops every extended keyboard mode of the current screen. */
const KEYBOARD = '\x1b[<99u';

/** In this order: a margin or origin change moves the cursor, so it stands between save and restore. */
const UNDO = [
  '\x1b[?2026l', // synchronised output
  '\x1b[?9l\x1b[?1000l\x1b[?1001l\x1b[?1002l\x1b[?1003l', // mouse reports
  '\x1b[?1005l\x1b[?1006l\x1b[?1015l\x1b[?1016l', // and their encodings
  '\x1b[?1004l', // focus reports
  '\x1b[?2004l', // bracketed paste
  '\x1b[?2031l\x1b[?2048l', // colour scheme and size reports
  '\x1b[>4m', // modified keys
  '\x1b[?1l\x1b>', // cursor keys and keypad
  '\x1b7\x1b[?69l\x1b[r\x1b[?6l\x1b8', // margins and origin
  '\x1b[?7h\x1b[4l\x1b[20l\x1b[?5l', // wrapping, insertion, new line, reverse video
  '\x1b(B\x1b)B\x0f', // character sets
  '\x1b]8;;\x1b\\', // hyperlink
  '\x1b[0m\x1b[?25h\x1b[0 q', // colours, cursor
].join('');

export class TerminalModes {
  #isAlternate = false;
  #isAddressed = false;
  #isAtLineStart = true;
  #unfinished: Buffer = Buffer.alloc(0);

  /** Takes note of output, in order, however it is cut. */
  feed(bytes: Buffer): void {
    const last = bytes.at(-1);
    this.#isAtLineStart = last === undefined ? this.#isAtLineStart : last === LF || last === CR;
    const text = this.#unfinished.length > 0 ? Buffer.concat([this.#unfinished, bytes]) : bytes;
    this.#unfinished = Buffer.alloc(0);
    for (let at = text.indexOf(ESC); at !== -1; at = text.indexOf(ESC, at + 1)) {
      const end = sequenceEnd(text, at);
      if (end === undefined) {
        this.#unfinished = Buffer.from(text.subarray(at));
        return;
      }
      this.#note(text.toString('latin1', at + 1, end));
    }
  }

  get isAlternate(): boolean {
    return this.#isAlternate;
  }

  /** What brings the terminal back to where a shell expects it, the cursor below what was shown. */
  undo(): string {
    // Each screen has a keyboard stack of its own, and leaving one brings back its saved colours.
    const leave = this.#isAlternate ? `${KEYBOARD}\x1b[?1049l` : '';
    return `${FINISH}${leave}${KEYBOARD}${UNDO}${this.#isAlternate ? '' : this.#below()}`;
  }

  /** Where the next line can begin: after output that placed the cursor, only the bottom is safe. */
  #below(): string {
    if (this.#isAddressed) {
      return '\x1b[9999;1H\r\n';
    }
    return this.#isAtLineStart ? '' : '\r\n';
  }

  #note(sequence: string): void {
    if (sequence === 'c') {
      this.#isAlternate = false;
    }
    const [, modes, set] = /^\[\?([\d;]*)([hl])$/.exec(sequence) ?? [];
    if (modes?.split(';').some((mode) => ALTERNATE_SCREENS.includes(mode))) {
      this.#isAlternate = set === 'h';
    }
    this.#isAddressed ||= /^\[[\d;]*[HfdJ]$/.test(sequence);
  }
}

/** One past the end of the sequence that begins at `start`; undefined while it is not all here. */
function sequenceEnd(text: Buffer, start: number): number | undefined {
  if (text[start + 1] !== 0x5b) {
    return start + 1 < text.length ? start + 2 : undefined;
  }
  for (let index = start + 2; index < text.length; index += 1) {
    const byte = text[index] ?? 0;
    if ((byte >= 0x40 && byte <= 0x7e) || byte < 0x20 || index - start > SEQUENCE_MAX) {
      return index + 1;
    }
  }
  return undefined;
}
