import { describe, expect, test } from 'vitest';
import { ResolveResponse } from '#gen/wheelhouse/authority/v1/authority.js';
import { type Outcome, refused } from '#kernel/outcome.js';
import { ref } from '#kernel/refs.js';
import { ada, commands, demo, designation, node, presented } from '../domain/history.js';
import { type Grant, resolve } from '../domain/resolve.js';
import type { State } from '../domain/state.js';
import { encodeAnswers, resolveDefinition } from './encoded-answers.js';
import { fromOutcome } from './wire.js';

function observed(state: State): Outcome<Grant> {
  const named = { ...designation, node, asker: ada };
  return resolve(state, { operation: 'OBSERVE', presentation: 1n, ...named }, 0);
}

function typed(state: State): Outcome<Grant> {
  return resolve(state, { operation: 'AGENT_INPUT', ...designation, node, asker: demo }, 0);
}

function generated(batch: bigint, authorityEpoch: bigint, outcomes: readonly Outcome<Grant>[]) {
  const value = { batch, authorityEpoch, answers: outcomes.map(fromOutcome) };
  return Buffer.from(ResolveResponse.encode({ message: { $case: 'answers', value } }).finish());
}

describe('encoded answers', () => {
  const { state } = presented();
  const no: Outcome<Grant> = refused('WORKER_CLOSED', { worker: 'demo' });
  test.each([
    ['none', []],
    ['a grant', [observed(state)]],
    ['a grant again', [observed(state), observed(state)]],
    ['a grant to the agent', [typed(state), observed(state)]],
    ['a refusal among grants', [observed(state), no, typed(state)]],
    ['many', Array.from({ length: 1_000 }, (_, index) => (index % 7 === 0 ? no : observed(state)))],
  ])('%s: the same bytes as the generated encoder’s', (_what, outcomes) => {
    for (const [batch, epoch] of [
      [1n, 1n],
      [2n ** 63n, 2n ** 64n - 1n],
    ] as const) {
      const { bytes } = encodeAnswers(batch, epoch, outcomes);
      expect(bytes.equals(generated(batch, epoch, outcomes))).toBe(true);
    }
  });

  test('a terminal in new hands is encoded anew, and so is another life at the controls', () => {
    const history = presented();
    const before = [observed(history.state), typed(history.state)];
    encodeAnswers(1n, 1n, before);
    history.unbind(demo);
    history.unbind(ada);
    history.after(
      commands.bind({ asker: demo, peerRef: ref('pr_back') }),
      commands.bind({ peerRef: ref('pr_ada_back') }),
    );
    history.present();
    const after = [observed(history.state), typed(history.state)];
    expect(after.map(({ kind }) => kind)).toEqual(['granted', 'granted']);
    const { bytes } = encodeAnswers(2n, 2n, after);
    expect(bytes.equals(generated(2n, 2n, after))).toBe(true);
    expect(bytes.equals(generated(2n, 2n, before))).toBe(false);
  });

  test('another life at the controls alone is encoded anew: the worker is the same', () => {
    const history = presented();
    const before = observed(history.state);
    encodeAnswers(1n, 1n, [before]);
    history.unbind(ada);
    history.after(commands.bind({ peerRef: ref('pr_ada_back') }));
    history.present();
    const after = observed(history.state);
    const { bytes } = encodeAnswers(1n, 1n, [after]);
    expect(bytes.equals(generated(1n, 1n, [after]))).toBe(true);
    expect(bytes.equals(generated(1n, 1n, [before]))).toBe(false);
  });

  test('pass the serializer as they are; every other response is encoded by it', () => {
    const encoded = encodeAnswers(1n, 1n, [observed(state)]);
    expect(resolveDefinition.responseSerialize(encoded)).toBe(encoded.bytes);
    const recorded = {
      message: {
        $case: 'recorded',
        value: { request: 1n, authorityEpoch: 2n, refused: undefined },
      },
    } as const;
    const bytes = resolveDefinition.responseSerialize(recorded);
    expect(ResolveResponse.decode(bytes)).toEqual(recorded);
  });
});
