import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { granted, refused } from '#kernel/outcome.js';
import { epoch, generation, ref } from '#kernel/refs.js';
import type { CloseReasonName } from '#kernel/refusal.js';
import type { Grant } from './basis.js';
import {
  openPresentation,
  type Presentation,
  type PresentationEffect,
  type PresentationInput,
  stepPresentation,
} from './presentation.js';
import type { Exit } from './terminal.js';

const grant: Grant = {
  workerRef: ref('wk_1'),
  workerGeneration: generation(3n),
  carrierRef: ref('cr_1'),
  attachmentRef: ref('at_1'),
  attachmentEpoch: epoch(1n),
  carrierEpoch: epoch(1n),
  authorityEpoch: 40n,
  stream: 1,
};

const exited: Exit = { kind: 'code', code: 0 };

function opened(atSeq = 0n, windowBytes = 1000): Presentation {
  return openPresentation({ basis: grant, atSeq, windowBytes, frameBytesMax: 100 });
}

function run(
  state: Presentation,
  ...inputs: PresentationInput[]
): { state: Presentation; effects: PresentationEffect[] } {
  const effects: PresentationEffect[] = [];
  for (const input of inputs) {
    const step = stepPresentation(state, input);
    state = step.state;
    effects.push(...step.effects);
  }
  return { state, effects };
}

const progressed = (producedSeq: bigint, end?: Exit): PresentationInput => ({
  kind: 'progressed',
  producedSeq,
  end,
});
const answered: PresentationInput = { kind: 'answered', answer: granted(grant) };
const confirmed: PresentationInput = { kind: 'confirmed' };

describe('the release rule', () => {
  test('P6 nothing leaves before an answer, and then no more than was read when it was asked', () => {
    const { effects } = run(opened(), progressed(40n), progressed(90n), answered);
    expect(effects).toEqual([
      { kind: 'ask', coverage: { uptoSeq: 40n, coversEnd: false } },
      { kind: 'hand-over', handover: { kind: 'frame', fromSeq: 0n, lengthBytes: 40 } },
      { kind: 'ask', coverage: { uptoSeq: 90n, coversEnd: false } },
    ]);
  });

  test('P6 one frame at a time: the next when the transport has taken the one before', () => {
    const { state, effects } = run(opened(), progressed(250n), answered);
    expect(effects.filter((effect) => effect.kind === 'hand-over')).toHaveLength(1);
    const later = run(state, confirmed, confirmed, confirmed);
    expect(later.effects).toEqual([
      { kind: 'hand-over', handover: { kind: 'frame', fromSeq: 100n, lengthBytes: 100 } },
      { kind: 'hand-over', handover: { kind: 'frame', fromSeq: 200n, lengthBytes: 50 } },
    ]);
  });

  test('the end is told last, after it was asked about, and closes', () => {
    const { effects } = run(
      opened(),
      progressed(10n),
      answered,
      confirmed,
      progressed(10n, exited),
      answered,
    );
    expect(effects.slice(2)).toEqual([
      { kind: 'ask', coverage: { uptoSeq: 10n, coversEnd: true } },
      { kind: 'hand-over', handover: { kind: 'end', outSeq: 10n, exit: exited } },
      { kind: 'close', reason: 'ENDED' },
    ]);
  });

  test('a size stands at its place in the output', () => {
    const mark = { outSeq: 30n, geometry: { rows: 50, cols: 132 } };
    const { effects } = run(
      opened(),
      { kind: 'resized', mark },
      progressed(60n),
      answered,
      confirmed,
    );
    expect(effects.slice(1)).toEqual([
      { kind: 'hand-over', handover: { kind: 'frame', fromSeq: 0n, lengthBytes: 30 } },
      { kind: 'hand-over', handover: { kind: 'geometry', mark } },
      { kind: 'hand-over', handover: { kind: 'frame', fromSeq: 30n, lengthBytes: 30 } },
    ]);
  });
});

describe('what closes', () => {
  const waiting = run(opened(), progressed(40n)).state;
  const departures: readonly [string, Partial<Grant>, CloseReasonName][] = [
    ['another generation', { workerGeneration: generation(4n) }, 'GENERATION_ADVANCED'],
    ['another occupant', { carrierRef: ref('cr_2') }, 'OCCUPANT_CHANGED'],
    ['another terminal', { attachmentRef: ref('at_2') }, 'ATTACHMENT_REINCARNATED'],
    ['the carrier replaced', { carrierEpoch: epoch(2n) }, 'CARRIER_REPLACED'],
    ['the terminal attached anew', { attachmentEpoch: epoch(2n) }, 'ATTACHMENT_REINCARNATED'],
  ];

  test.each(departures)('P5 %s closes, and nothing is released', (_what, changed, reason) => {
    const answer = granted({ ...grant, ...changed });
    const { effects } = run(waiting, { kind: 'answered', answer });
    expect(effects).toEqual([{ kind: 'close', reason }]);
  });

  test.each([
    ['WORKER_CLOSED', 'WORKER_CLOSED'],
    ['WORKER_GENERATION_ADVANCED', 'GENERATION_ADVANCED'],
    ['LOCUS_NOT_OCCUPIED', 'AGENT_UNBOUND'],
    ['CARRIER_NOT_ATTACHED', 'RELEASED'],
    ['CARRIER_ATTACHED_ELSEWHERE', 'CARRIER_REPLACED'],
    ['OWNER_UNREACHABLE', 'OWNER_LOST'],
    ['CONTROL_CHANNEL_NOT_BOUND', 'CONTROL_UNBOUND'],
    ['CERTIFICATE_EXPIRED', 'CONTROL_UNBOUND'],
    ['PRESENTATION_ENDED', 'REPLACED'],
  ] as const)('a resolve refused %s closes %s', (refusal, reason) => {
    const { effects } = run(waiting, { kind: 'answered', answer: refused(refusal) });
    expect(effects).toEqual([{ kind: 'close', reason }]);
  });

  test('an ack beyond what was sent is a violation', () => {
    const { effects } = run(opened(), { kind: 'acked', nextSeq: 1n });
    expect(effects).toEqual([{ kind: 'close', reason: 'PROTOCOL_VIOLATION' }]);
  });

  test('B3 a hold that is spent closes as lagging when the reader had not made room', () => {
    const full = run(opened(0n, 50), progressed(90n), answered, confirmed, {
      kind: 'blocking',
      isBlocking: true,
    });
    const { effects } = run(full.state, { kind: 'hold-spent', limitMs: 1_000 });
    expect(effects).toEqual([{ kind: 'hold-ended' }, { kind: 'close', reason: 'LAGGING' }]);
  });

  test.each([
    ['the question has no answer', [] as PresentationInput[]],
    ['authority is away', [{ kind: 'authority-lost' }] as PresentationInput[]],
  ])('E1 a hold that is spent while %s closes as authority-unreachable', (_what, inputs) => {
    const held = run(waiting, ...inputs, { kind: 'blocking', isBlocking: true });
    const { effects } = run(held.state, { kind: 'hold-spent', limitMs: 1_000 });
    expect(effects.at(-1)).toEqual({ kind: 'close', reason: 'AUTHORITY_UNREACHABLE' });
  });

  test('B3 where nothing may be held, a terminal that outran the answer closes as lagging', () => {
    const held = run(waiting, { kind: 'blocking', isBlocking: true });
    const { effects } = run(held.state, { kind: 'hold-spent', limitMs: 0 });
    expect(effects.at(-1)).toEqual({ kind: 'close', reason: 'LAGGING' });
  });

  test('E1 while authority is away nothing is asked and nothing leaves', () => {
    const { effects } = run(waiting, { kind: 'authority-lost' }, progressed(80n), progressed(90n));
    expect(effects).toEqual([]);
  });

  test('E1 nor does what was covered before authority went away', () => {
    const covered = run(opened(), progressed(250n), answered).state;
    expect(run(covered, { kind: 'authority-lost' }, confirmed, confirmed).effects).toEqual([]);
  });

  test('B2 a frame that was withheld counts as not sent', () => {
    const { state, effects } = run(opened(), progressed(250n), answered, confirmed);
    const handover = effects.flatMap((effect) =>
      effect.kind === 'hand-over' ? [effect.handover] : [],
    )[1]!;
    const after = run(state, { kind: 'withheld', handover });
    expect(after.effects).toEqual([{ kind: 'close', reason: 'RELEASED' }]);
    expect(after.state.reader.window.sentSeq).toBe(100n);
  });
});

/** Everything that can come to a presentation, for the two laws that hold whatever comes. */
const anyInput: fc.Arbitrary<PresentationInput> = fc.oneof(
  fc.record({
    kind: fc.constant('progressed' as const),
    producedSeq: fc.bigInt(0n, 5000n),
    end: fc.constant(undefined),
  }),
  fc.constant(answered),
  fc.constant<PresentationInput>({ kind: 'answered', answer: refused('WORKER_CLOSED') }),
  fc.constant(confirmed),
  fc.record({ kind: fc.constant('acked' as const), nextSeq: fc.bigInt(0n, 5000n) }),
  fc.constant<PresentationInput>({ kind: 'authority-lost' }),
  fc.constant<PresentationInput>({ kind: 'hold-spent', limitMs: 1_000 }),
  fc.record({ kind: fc.constant('blocking' as const), isBlocking: fc.boolean() }),
);

test('P5 whatever comes after the close does nothing', () => {
  const closed = run(opened(), { kind: 'ended', reason: 'WORKER_CLOSED' }).state;
  fc.assert(
    fc.property(fc.array(anyInput), (inputs) => {
      expect(run(closed, ...inputs)).toEqual({ state: closed, effects: [] });
    }),
  );
});

test('P6 after any interleaving every byte released was read before the question that covers it', () => {
  fc.assert(
    fc.property(
      fc.array(fc.nat(5), { maxLength: 300 }),
      fc.infiniteStream(fc.nat(120)),
      (choices, numbers) => {
        let state = opened(0n, 400);
        let producedSeq = 0n;
        let askedUptoSeq: bigint | undefined;
        let coveredSeq = 0n;
        let nextSeq = 0n;
        const next = (): number => numbers.next().value ?? 1;
        for (const choice of choices) {
          const inputs: PresentationInput[] = [];
          if (choice <= 1) {
            producedSeq += BigInt(next());
            inputs.push(progressed(producedSeq));
          } else if (choice === 2 && askedUptoSeq !== undefined) {
            coveredSeq = askedUptoSeq;
            askedUptoSeq = undefined;
            inputs.push(answered);
          } else if (choice === 3) {
            inputs.push(confirmed);
          } else if (choice === 4) {
            inputs.push({ kind: 'acked', nextSeq: state.reader.window.sentSeq });
          }
          const step = run(state, ...inputs);
          state = step.state;
          for (const effect of step.effects) {
            if (effect.kind === 'ask') {
              expect(askedUptoSeq).toBeUndefined();
              expect(effect.coverage.uptoSeq).toBe(producedSeq);
              askedUptoSeq = producedSeq;
            }
            if (effect.kind === 'hand-over' && effect.handover.kind === 'frame') {
              const { fromSeq, lengthBytes } = effect.handover;
              expect(fromSeq).toBe(nextSeq);
              nextSeq = fromSeq + BigInt(lengthBytes);
              expect(nextSeq).toBeLessThanOrEqual(coveredSeq);
            }
          }
        }
      },
    ),
  );
});
