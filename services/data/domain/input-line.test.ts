import fc from 'fast-check';
import { expect, test } from 'vitest';
import { granted, refused } from '#kernel/outcome.js';
import { epoch, generation, ref } from '#kernel/refs.js';
import type { Grant } from './basis.js';
import {
  emptyLine,
  type InputLine,
  type LineEffect,
  type LineInput,
  stepLine,
} from './input-line.js';

const limits = { inputAtomMax: 16, inputWaitingBytesMax: 64, inputWaitingFramesMax: 8 };
const grant: Grant = {
  workerRef: ref('wk_1'),
  workerGeneration: generation(1n),
  carrierRef: ref('cr_1'),
  attachmentRef: ref('at_1'),
  attachmentEpoch: epoch(1n),
  carrierEpoch: epoch(1n),
  authorityEpoch: 1n,
  stream: 1,
};

/** A line with a terminal behind it that takes so many bytes before it blocks. */
class Rig {
  line: InputLine = emptyLine;
  readonly written: number[] = [];
  readonly told: LineEffect[] = [];
  room = Number.POSITIVE_INFINITY;

  feed(input: LineInput): void {
    const { state, effects } = stepLine(this.line, input, limits);
    this.line = state;
    for (const effect of effects) {
      this.told.push(effect);
      if (effect.kind === 'write') {
        const taken = effect.payload.subarray(0, Math.min(effect.payload.length, this.room));
        this.written.push(...taken);
        this.room -= taken.length;
        this.feed({ kind: 'wrote', bytes: taken.length });
      }
    }
  }

  frame(seq: bigint, ...bytes: number[]): void {
    this.feed({ kind: 'frame', seq, payload: Uint8Array.from(bytes) });
  }

  answer(): void {
    this.feed({ kind: 'answered', question: this.line.question, answer: granted(grant) });
  }

  kinds(): string[] {
    return this.told.map(({ kind }) => kind);
  }
}

test('B5 input is acknowledged when the terminal has it: not when received, not when allowed', () => {
  const rig = new Rig();
  rig.room = 0;
  rig.frame(0n, 1, 2, 3);
  rig.answer();
  expect(rig.kinds()).toEqual(['ask', 'write', 'block-began']);
  rig.room = 3;
  rig.feed({ kind: 'writable' });
  expect(rig.told.slice(3)).toContainEqual({ kind: 'ack', nextSeq: 3n });
});

test('B5 input at a position already accepted is a no-op and acknowledged again', () => {
  const rig = new Rig();
  rig.frame(0n, 1, 2, 3);
  rig.answer();
  rig.frame(0n, 1, 2, 3);
  expect(rig.written).toEqual([1, 2, 3]);
  expect(rig.told.at(-1)).toEqual({ kind: 'ack', nextSeq: 3n });
});

test('a frame that overlaps what was received adds only what is new', () => {
  const rig = new Rig();
  rig.frame(0n, 1, 2, 3);
  rig.frame(1n, 2, 3, 4);
  rig.answer();
  rig.answer();
  expect(rig.written).toEqual([1, 2, 3, 4]);
});

test('B5 a gap is refused INPUT_GAP with the position expected, and loses nothing', () => {
  const rig = new Rig();
  rig.frame(5n, 1);
  const facts = { expectedSeq: '0', givenSeq: '5' };
  expect(rig.told).toEqual([{ kind: 'refuse', refusal: { reason: 'INPUT_GAP', facts } }]);
  rig.frame(0n, 9);
  rig.answer();
  expect(rig.written).toEqual([9]);
});

test('a frame above the atom is refused REQUEST_INVALID', () => {
  const rig = new Rig();
  rig.frame(0n, ...Array.from({ length: 17 }, () => 1));
  expect(rig.told).toMatchObject([{ kind: 'refuse', refusal: { reason: 'REQUEST_INVALID' } }]);
});

test('B5 a frame blocked too long is accepted as far as written, the rest refused TERMINAL_NOT_READING', () => {
  const rig = new Rig();
  rig.room = 2;
  rig.frame(0n, 1, 2, 3);
  rig.frame(3n, 4);
  rig.answer();
  rig.feed({ kind: 'block-spent' });
  expect(rig.told).toContainEqual({ kind: 'ack', nextSeq: 2n });
  const refusal = { reason: 'TERMINAL_NOT_READING', facts: { acceptedSeq: '2' } };
  expect(rig.told).toContainEqual({ kind: 'refuse', refusal });
  rig.room = 10;
  rig.frame(2n, 3, 4);
  rig.answer();
  expect(rig.written).toEqual([1, 2, 3, 4]);
});

test('an answer to an older question allows nothing that came after it', () => {
  const rig = new Rig();
  rig.frame(0n, 1);
  const { question } = rig.line;
  rig.feed({ kind: 'answered', question, answer: refused('AUTHORITY_UNREACHABLE') });
  rig.frame(0n, 2);
  rig.feed({ kind: 'answered', question, answer: granted(grant) });
  expect(rig.written).toEqual([]);
  rig.answer();
  expect(rig.written).toEqual([2]);
});

test('what a question did not speak for waits for the next', () => {
  const rig = new Rig();
  rig.frame(0n, 1);
  rig.frame(1n, 2);
  rig.answer();
  expect(rig.written).toEqual([1]);
  rig.answer();
  expect(rig.written).toEqual([1, 2]);
});

test('the writer is made to wait when much is waiting, and goes on when it is not', () => {
  const rig = new Rig();
  for (let seq = 0; seq < 8; seq += 1) {
    rig.frame(BigInt(seq), seq);
  }
  expect(rig.kinds()).toContain('pause');
  rig.answer();
  rig.answer();
  expect(rig.kinds().at(-1)).not.toBe('pause');
  expect(rig.kinds()).toContain('resume');
});

test('B5 after any interleaving the terminal has each byte once and in order, and acks say exactly that', () => {
  const moves = fc.array(
    fc.oneof(
      fc.record({ kind: fc.constant('send' as const), size: fc.integer({ min: 1, max: 16 }) }),
      fc.record({ kind: fc.constant('resend' as const), back: fc.nat(40) }),
      fc.record({ kind: fc.constant('answer' as const) }),
      fc.record({ kind: fc.constant('room' as const), room: fc.nat(30) }),
      fc.record({ kind: fc.constant('spent' as const) }),
    ),
    { maxLength: 200 },
  );
  fc.assert(
    fc.property(moves, (list) => {
      const rig = new Rig();
      rig.room = 20;
      for (const move of list) {
        const receivedSeq = rig.line.acceptedSeq + BigInt(rig.line.waitingBytes);
        if (move.kind === 'send') {
          rig.frame(receivedSeq, ...bytesAt(receivedSeq, move.size));
        } else if (move.kind === 'resend') {
          const seq = receivedSeq > BigInt(move.back) ? receivedSeq - BigInt(move.back) : 0n;
          rig.frame(seq, ...bytesAt(seq, 16));
        } else if (move.kind === 'answer') {
          rig.answer();
        } else if (move.kind === 'room') {
          rig.room += move.room;
          rig.feed({ kind: 'writable' });
        } else {
          rig.feed({ kind: 'block-spent' });
        }
        expect(rig.line.acceptedSeq).toBe(BigInt(rig.written.length));
      }
      expect(rig.written).toEqual(bytesAt(0n, rig.written.length));
    }),
  );
});

function bytesAt(seq: bigint, size: number): number[] {
  return Array.from({ length: size }, (_, index) => (Number(seq) + index) % 251);
}
