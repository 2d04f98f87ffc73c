/** What a look was, as one JSON object a line, the same from a client in any language. */
import { createHash } from 'node:crypto';
import { closeSync, openSync, writeSync } from 'node:fs';
import type { CallError, ClosedEnd, Geometry, StreamEnd } from '../index.js';
import { RefusedError } from '../index.js';

/** Written as it happens, with totals in place of chunks. Positions are strings: they are 64 bits. */
export class Transcript implements Disposable {
  readonly #fd: number | undefined;
  readonly #hash = createHash('sha256');
  #bytes = 0n;

  /** `-` is stdout. Without a target nothing is written. Throws when the file cannot be made. */
  constructor(target: string | undefined) {
    if (target !== undefined) {
      this.#fd = target === '-' ? 1 : openSync(target, 'w');
    }
  }

  bound(): void {
    this.#note({ event: 'bound' });
  }

  failed(error: CallError): void {
    if (error instanceof RefusedError) {
      const { reason, facts } = error.refusal;
      this.#note({ event: 'refused', reason, facts: sorted(facts) });
    } else {
      const [service] = error.service.split(' ');
      this.#note({ event: 'unreachable', service });
    }
  }

  sized(event: 'opened' | 'resized', outSeq: bigint, { rows, cols }: Geometry): void {
    this.#note({ event, out_seq: String(outSeq), rows, cols });
  }

  took(bytes: Uint8Array): void {
    this.#hash.update(bytes);
    this.#bytes += BigInt(bytes.length);
  }

  ended(end: StreamEnd): void {
    this.#note({ event: 'output', bytes: String(this.#bytes), sha256: this.#hash.digest('hex') });
    this.#note({ event: 'closed', ...closing(end) });
  }

  [Symbol.dispose](): void {
    if (this.#fd !== undefined && this.#fd !== 1) {
      closeSync(this.#fd);
    }
  }

  #note(event: Readonly<Record<string, unknown>>): void {
    if (this.#fd !== undefined) {
      writeSync(this.#fd, `${JSON.stringify(event)}\n`);
    }
  }
}

function closing(end: StreamEnd): Record<string, unknown> {
  switch (end.kind) {
    case 'closed':
      return {
        reason: end.reason,
        acked_seq: String(end.ackedSeq),
        sent_seq: String(end.sentSeq),
        produced_seq: String(end.producedSeq),
        ...exitOf(end),
      };
    case 'detached':
      return { reason: 'DETACHED', acked_seq: String(end.takenSeq) };
    case 'lost':
      return { reason: 'TRANSPORT_LOST', acked_seq: String(end.takenSeq) };
  }
}

function exitOf({ exit }: ClosedEnd): Record<string, number> {
  if (exit === undefined) {
    return {};
  }
  return exit.kind === 'code' ? { exit_code: exit.code } : { exit_signal: exit.signal };
}

function sorted(facts: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(Object.entries(facts).sort(([one], [other]) => (one < other ? -1 : 1)));
}
