/** What a follower delivers is exact and in order under any inputs, and it never dials hotly. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  type FollowEffect,
  type FollowInput,
  type Following,
  follow,
  startFollowing,
} from './following.js';

const limits = { firstMs: 100, maxMs: 5_000 };

/** Runs inputs; returns the last state and every effect. */
function run(inputs: readonly FollowInput[], from: Following = startFollowing(0n)) {
  const effects: FollowEffect[] = [];
  let state = from;
  for (const input of inputs) {
    const step = follow(state, input, limits);
    state = step.state;
    effects.push(...step.effects);
  }
  return { state, effects };
}

const begun: readonly FollowInput[] = [{ kind: 'begin', atMs: 0 }, { kind: 'opened' }];
const cutOff: readonly FollowInput[] = [...begun, { kind: 'ended', atMs: 10_000 }];

describe('the table: each input in each state of the link', () => {
  const links = {
    away: run(cutOff).state,
    dialling: run([{ kind: 'begin', atMs: 0 }]).state,
    following: run(begun).state,
  } as const;
  const inputs = {
    begin: { kind: 'begin', atMs: 20_000 },
    due: { kind: 'due', atMs: 20_000 },
    opened: { kind: 'opened' },
    fact: { kind: 'fact', index: 1n },
    repeated: { kind: 'fact', index: 0n },
    skipped: { kind: 'fact', index: 2n },
    ended: { kind: 'ended', atMs: 20_000 },
    hint: { kind: 'hint', index: 1n, atMs: 20_000 },
    stale: { kind: 'hint', index: 0n, atMs: 20_000 },
  } as const satisfies Record<string, FollowInput>;
  type Ruling = readonly [link: string, ...effects: string[]];
  const rulings: Record<keyof typeof links, Record<keyof typeof inputs, Ruling>> = {
    away: {
      begin: ['dialling', 'dial'],
      due: ['dialling', 'dial'],
      opened: ['away'],
      fact: ['away'],
      repeated: ['away'],
      skipped: ['away'],
      ended: ['away'],
      hint: ['dialling', 'dial'],
      stale: ['away'],
    },
    dialling: {
      begin: ['dialling'],
      due: ['dialling'],
      opened: ['following'],
      fact: ['following', 'deliver'],
      repeated: ['dialling'],
      skipped: ['dialling', 'drop-link'],
      ended: ['away', 'wait'],
      hint: ['dialling'],
      stale: ['dialling'],
    },
    following: {
      begin: ['following'],
      due: ['following'],
      opened: ['following'],
      fact: ['following', 'deliver'],
      repeated: ['following'],
      skipped: ['following', 'drop-link'],
      ended: ['away', 'wait'],
      hint: ['following'],
      stale: ['following'],
    },
  };
  for (const [link, byInput] of Object.entries(rulings)) {
    test.each(Object.entries(byInput))(`${link}, %s`, (input, ruling) => {
      const { state, effects } = run(
        [inputs[input as keyof typeof inputs]],
        links[link as keyof typeof links],
      );
      expect([state.link.kind, ...effects.map(({ kind }) => kind)]).toEqual(ruling);
    });
  }
});

describe('waiting', () => {
  test('each attempt that comes to nothing waits longer, up to the longest', () => {
    const attempts = Array.from({ length: 8 }, (_, at): FollowInput[] => [
      { kind: 'due', atMs: at * 10_000 },
      { kind: 'ended', atMs: at * 10_000 + 1 },
    ]);
    const waits = run(attempts.flat()).effects.flatMap((effect) =>
      effect.kind === 'wait' ? [effect.delayMs] : [],
    );
    expect(waits).toEqual([100, 200, 400, 800, 1_600, 3_200, 5_000, 5_000]);
  });

  test('an owner that takes the call and drops it at once has earned no fresh start', () => {
    const attempts = Array.from({ length: 4 }, (_, at): FollowInput[] => [
      { kind: 'due', atMs: at * 10_000 },
      { kind: 'opened' },
      { kind: 'fact', index: 9n },
      { kind: 'ended', atMs: at * 10_000 + 1 },
    ]);
    const { effects } = run(attempts.flat());
    const waits = effects.flatMap((effect) => (effect.kind === 'wait' ? [effect.delayMs] : []));
    expect(waits).toEqual([100, 200, 400, 800]);
  });

  test('a fact, or a long life, earns a fresh start', () => {
    const failed: readonly FollowInput[] = [
      { kind: 'begin', atMs: 0 },
      { kind: 'ended', atMs: 1 },
      { kind: 'due', atMs: 101 },
    ];
    const withFact = run([...failed, { kind: 'fact', index: 1n }, { kind: 'ended', atMs: 102 }]);
    expect(withFact.effects.at(-1)).toEqual({ kind: 'wait', delayMs: 100 });
    const longLived = run([...failed, { kind: 'opened' }, { kind: 'ended', atMs: 9_000 }]);
    expect(longLived.effects.at(-1)).toEqual({ kind: 'wait', delayMs: 100 });
  });

  test('a hint ends a long wait, and the backoff begins anew', () => {
    const away = run([
      { kind: 'begin', atMs: 0 },
      { kind: 'ended', atMs: 1 },
      { kind: 'due', atMs: 200 },
      { kind: 'ended', atMs: 201 },
    ]).state;
    const hinted = run([{ kind: 'hint', index: 5n, atMs: 1_000 }], away);
    expect(hinted.effects).toEqual([{ kind: 'dial', after: 0n }]);
    const again = run([{ kind: 'ended', atMs: 1_001 }], hinted.state);
    expect(again.effects).toEqual([{ kind: 'wait', delayMs: 100 }]);
  });

  test('a hint too soon after a dialling waits for its turn', () => {
    const away = run([
      { kind: 'begin', atMs: 0 },
      { kind: 'ended', atMs: 10 },
    ]).state;
    const { effects } = run([{ kind: 'hint', index: 5n, atMs: 30 }], away);
    expect(effects).toEqual([{ kind: 'wait', delayMs: 70 }]);
  });
});

describe('how fresh it is', () => {
  test('it is cut off since its stream ended, however often it has dialled since', () => {
    const { state } = run([
      ...cutOff,
      { kind: 'due', atMs: 11_000 },
      { kind: 'ended', atMs: 12_000 },
    ]);
    expect(state.cutOffAtMs).toBe(10_000);
    expect(run([{ kind: 'due', atMs: 13_000 }, { kind: 'opened' }], state).state.cutOffAtMs).toBe(
      undefined,
    );
  });
});

const index = fc.bigInt({ min: 0n, max: 12n });
const input = (atMs: number): fc.Arbitrary<FollowInput> =>
  fc.oneof(
    fc.constant<FollowInput>({ kind: 'due', atMs }),
    fc.constant<FollowInput>({ kind: 'opened' }),
    fc.constant<FollowInput>({ kind: 'ended', atMs }),
    index.map<FollowInput>((at) => ({ kind: 'fact', index: at })),
    fc
      .oneof(index, fc.constant(2n ** 64n - 1n))
      .map<FollowInput>((at) => ({ kind: 'hint', index: at, atMs })),
  );
const history = fc.array(fc.nat({ max: 400 }), { maxLength: 200 }).chain((pauses) => {
  let atMs = 0;
  const instants = pauses.map((pause) => {
    atMs += pause;
    return atMs;
  });
  return fc.tuple(...instants.map(input));
});

describe('under any inputs', () => {
  test('F1 holds: what is delivered is each fact after the start, once and in order', () => {
    fc.assert(
      fc.property(history, fc.bigInt({ min: 0n, max: 3n }), (inputs, after) => {
        let state = startFollowing(after);
        let expected = after;
        for (const given of inputs) {
          const step = follow(state, given, limits);
          if (step.effects.some(({ kind }) => kind === 'deliver')) {
            expected += 1n;
            expect(given).toEqual({ kind: 'fact', index: expected });
          }
          expect(step.state.lastIndex).toBe(expected);
          state = step.state;
        }
      }),
    );
  });

  test('whatever is hinted, two diallings by hints are never closer than the first wait', () => {
    fc.assert(
      fc.property(history, (inputs) => {
        let state = startFollowing(0n);
        let dialledAtMs = Number.NEGATIVE_INFINITY;
        for (const given of inputs) {
          const step = follow(state, given, limits);
          if (step.effects.some(({ kind }) => kind === 'dial') && 'atMs' in given) {
            if (given.kind === 'hint') {
              expect(given.atMs - dialledAtMs).toBeGreaterThanOrEqual(limits.firstMs);
            }
            dialledAtMs = given.atMs;
          }
          state = step.state;
        }
      }),
    );
  });

  test('hints change when, not what: without them the same is delivered', () => {
    fc.assert(
      fc.property(history, (inputs) => {
        const alone = inputs.filter(({ kind }) => kind !== 'hint');
        // A hint may dial where nothing else would have: the facts that follow are then had earlier.
        expect(run(inputs).state.lastIndex).toBeGreaterThanOrEqual(run(alone).state.lastIndex);
      }),
    );
  });
});
