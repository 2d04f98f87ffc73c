/**
 * A terminal as it is, byte for byte in both directions.
 *
 * Node's own raw mode goes on turning LF into CR LF on output, which would not be what the watched
 * program wrote. The layout of termios differs between systems, so it is only kept, never looked into.
 */
import koffi from 'koffi';

/** More than any system's termios. */
const TERMIOS_BYTES = 256;
const TCSANOW = 0;
const TCSADRAIN = 1;
const TCIFLUSH = process.platform === 'darwin' ? 1 : 0;

/** Puts it back. */
export interface RawMode extends Disposable {
  /** Drops what was typed and not yet read. */
  dropInput(): void;
}

/** Undefined when the descriptor is no terminal after all. */
export function enterRawMode(fd: number): RawMode | undefined {
  const libc = koffi.load(null);
  const tcgetattr = libc.func('int tcgetattr(int fd, void *termios)');
  const tcsetattr = libc.func('int tcsetattr(int fd, int when, const void *termios)');
  const cfmakeraw = libc.func('void cfmakeraw(void *termios)');
  const tcflush = libc.func('int tcflush(int fd, int queue)');
  const before = Buffer.alloc(TERMIOS_BYTES);
  if (tcgetattr(fd, before) !== 0) {
    return undefined;
  }
  const raw = Buffer.from(before);
  cfmakeraw(raw);
  tcsetattr(fd, TCSANOW, raw);
  return {
    dropInput: () => {
      tcflush(fd, TCIFLUSH);
    },
    [Symbol.dispose]: () => {
      tcsetattr(fd, TCSADRAIN, before);
    },
  };
}
