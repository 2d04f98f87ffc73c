/**
 * A few frames of a repainting program as plain text, for where no terminal shows them.
 *
 * It knows only what the demo's program does: a frame begins at the top left and is written line by
 * line. It is no terminal emulator.
 */
import { stripVTControlCharacters } from 'node:util';

const HOME = '\x1b[H';
/** More than a look of the demo lasts; older bytes give way. */
const BYTES_MAX = 4 * 1024 * 1024;

export class FrameCapture {
  #bytes: Buffer[] = [];
  #length = 0;

  feed(bytes: Buffer): void {
    // The bytes are a view of a message that is reused: keep a copy.
    this.#bytes.push(Buffer.from(bytes));
    this.#length += bytes.length;
    while (this.#length > BYTES_MAX && this.#bytes.length > 1) {
      this.#length -= this.#bytes.shift()?.length ?? 0;
    }
  }

  /** At most `count` whole frames, spread over what was seen. */
  some(count: number): readonly string[] {
    const text = Buffer.concat(this.#bytes).toString('utf8');
    // What comes before the first HOME and after the last may be cut.
    const whole = text.split(HOME).slice(1, -1);
    const step = Math.max(1, Math.floor((whole.length - 1) / Math.max(1, count - 1)));
    return whole
      .filter((_, index) => index % step === 0)
      .slice(0, count)
      .map(plain);
  }
}

function plain(frame: string): string {
  return stripVTControlCharacters(frame)
    .split(/\r?\n/)
    .map((line) => line.trimEnd())
    .join('\n')
    .trimEnd();
}
