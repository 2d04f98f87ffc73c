/**
 * Finds the keys that leave a look among the bytes of the operator's terminal.
 *
 * Those bytes are not all keys: a terminal answers queries that the watched output contains, and
 * some answers hold a `q`. So `q` counts only outside escape sequences and pastes; Ctrl-C and
 * Ctrl-], which no answer contains, count everywhere, so that nobody is ever locked in.
 *
 *   ground ──ESC──► escape ──[──► csi ──final──► ground      csi 200~ ──► paste ──csi 201~──► ground
 *                     ├──O──► one more ──► ground            csi M ──► three mouse bytes ──► ground
 *                     └──] P X ^ _──► string ──BEL or ESC \──► ground
 */
type State =
  | { readonly kind: 'ground' }
  | { readonly kind: 'escape'; readonly inPaste: boolean }
  | { readonly kind: 'csi'; readonly text: string; readonly inPaste: boolean }
  | { readonly kind: 'skip'; readonly left: number }
  | { readonly kind: 'string' }
  | { readonly kind: 'string-escape' }
  | { readonly kind: 'paste' };

const ESC = 0x1b;
const BEL = 0x07;
const CTRL_C = 0x03;
const CTRL_BRACKET = 0x1d;
const KEY_Q = 0x71;
/** A control sequence longer than this is no key. */
const CSI_MAX = 32;

const ground: State = { kind: 'ground' };

export class DetachKeys {
  #state: State = ground;

  /** Whether one of the keys is among these bytes, the ones before them considered. */
  feed(bytes: Uint8Array): boolean {
    return bytes.some((byte) => this.#isDetach(byte));
  }

  #isDetach(byte: number): boolean {
    if (byte === CTRL_C || byte === CTRL_BRACKET) {
      return true;
    }
    const state = this.#state;
    if (state.kind === 'csi' && isFinal(byte)) {
      const text = state.text + String.fromCharCode(byte);
      this.#state = afterCsi(text, state.inPaste);
      return !state.inPaste && isDetachSequence(text);
    }
    this.#state = next(state, byte);
    return state.kind === 'ground' && byte === KEY_Q;
  }
}

function next(state: State, byte: number): State {
  switch (state.kind) {
    case 'ground':
      return byte === ESC ? { kind: 'escape', inPaste: false } : ground;
    case 'escape':
      return afterEscape(byte, state.inPaste);
    case 'csi':
      return state.text.length < CSI_MAX
        ? { ...state, text: state.text + String.fromCharCode(byte) }
        : state;
    case 'skip':
      return state.left > 1 ? { kind: 'skip', left: state.left - 1 } : ground;
    case 'string':
      return byte === ESC ? { kind: 'string-escape' } : byte === BEL ? ground : state;
    case 'string-escape':
      return byte === 0x5c ? ground : { kind: 'string' };
    case 'paste':
      return byte === ESC ? { kind: 'escape', inPaste: true } : state;
  }
}

function afterEscape(byte: number, inPaste: boolean): State {
  const char = String.fromCharCode(byte);
  if (char === '[') {
    return { kind: 'csi', text: '', inPaste };
  }
  if (inPaste) {
    return { kind: 'paste' };
  }
  if (char === 'O') {
    return { kind: 'skip', left: 1 };
  }
  return byte === ESC
    ? { kind: 'escape', inPaste }
    : ']PX^_'.includes(char)
      ? { kind: 'string' }
      : ground;
}

function afterCsi(text: string, inPaste: boolean): State {
  if (inPaste) {
    return text === '201~' ? ground : { kind: 'paste' };
  }
  if (text === '200~') {
    return { kind: 'paste' };
  }
  return text === 'M' ? { kind: 'skip', left: 3 } : ground;
}

function isFinal(byte: number): boolean {
  return byte >= 0x40 && byte <= 0x7e;
}

/** The same keys as the kitty protocol and modifyOtherKeys write them, when the program asked for that. */
function isDetachSequence(text: string): boolean {
  const [, kittyCode, kittyRest = ''] = /^(\d+)(?::[\d:]*)?((?:;[\d:]*)*)u$/.exec(text) ?? [];
  if (kittyCode !== undefined) {
    const [, modifiers = '', event = ''] = /^;(\d*)(?::(\d+))?/.exec(kittyRest) ?? [];
    return event !== '3' && isDetachKey(Number(kittyCode), Number(modifiers || '1'));
  }
  const [, modifiers, code] = /^27;(\d+);(\d+)~$/.exec(text) ?? [];
  return code !== undefined && isDetachKey(Number(code), Number(modifiers));
}

/** Modifiers are 1 and the sum of shift 1, alt 2, control 4, …; the locks, 64 and 128, do not matter. */
function isDetachKey(code: number, modifiers: number): boolean {
  const held = (modifiers - 1) & 0b0011_1111;
  return held === 0 ? code === KEY_Q : held === 4 && (code === 0x63 || code === 0x5d);
}
