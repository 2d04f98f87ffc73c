import { describe, expect, test } from 'vitest';
import { epoch, generation, ref } from '#kernel/refs.js';
import type { CloseReasonName } from '#kernel/refusal.js';
import type { Carried, Reconcile } from './command.js';
import type { Effect } from './effect.js';
import {
  active,
  carried,
  commands,
  demo,
  demoRef,
  type History,
  node,
  occupied,
  opened,
  presented,
  reserved,
} from './history.js';

function reconcile(history: History, given: Partial<Reconcile>) {
  const outcome = history.decide(commands.reconcile(given));
  if (outcome.kind === 'refused') {
    throw new Error(`an inventory is never refused: ${outcome.refusal.reason}`);
  }
  return outcome.value;
}

function verdictOn(effects: readonly Effect[]): CloseReasonName | 'keep' | undefined {
  const [told] = effects.flatMap((effect) =>
    effect.kind === 'tell-reconciled' ? effect.verdicts : [],
  );
  return told === undefined ? undefined : (told.endReason ?? 'keep');
}

describe('a carried terminal', () => {
  const closed = (): History => active().after(commands.close(), commands.finish);
  test.each([
    ['that the world holds goes on', () => active(), {}, 'keep'],
    ['whose occupant is awaited goes on', () => active().restart(), {}, 'keep'],
    ['that was only reserved goes on', () => reserved(), {}, 'keep'],
    ['of no worker ends', () => active(), { workerRef: ref<never>('wk_0') }, 'OWNER_LOST'],
    ['of a closing worker ends', () => active().after(commands.close()), {}, 'WORKER_CLOSED'],
    ['of a closed worker ends', closed, {}, 'WORKER_CLOSED'],
    [
      'of an earlier generation ends',
      () => closed().after(commands.reopen()),
      {},
      'GENERATION_ADVANCED',
    ],
    ['of an empty seat ends', () => opened(), {}, 'AGENT_UNBOUND'],
    ['that was released ends', () => occupied(), {}, 'RELEASED'],
    [
      'replaced by another ends',
      () => active(),
      { attachmentRef: ref<never>('at_0') },
      'CARRIER_REPLACED',
    ],
    [
      'of an epoch that was never given ends',
      () => active(),
      { attachmentEpoch: epoch(2n) },
      'ATTACHMENT_REINCARNATED',
    ],
    [
      'of a carrier that was never given ends',
      () => active(),
      { carrierEpoch: epoch(2n) },
      'ATTACHMENT_REINCARNATED',
    ],
  ] as const satisfies readonly (readonly [
    string,
    () => History,
    Partial<Carried>,
    CloseReasonName | 'keep',
  ])[])('%s', (_what, history, given, verdict) => {
    const { effects } = reconcile(history(), { carried: [carried(given)] });
    expect(verdictOn(effects)).toBe(verdict);
  });

  test('of another node’s worker ends', () => {
    const { effects } = reconcile(active(), { node: 'elsewhere', carried: [carried()] });
    expect(verdictOn(effects)).toBe('OWNER_LOST');
  });

  test('claimed by a life of the node that did not start it ends, and is released', () => {
    const given = { dataIncarnation: ref<never>('dn_second'), carried: [carried()] };
    const { effects, events } = reconcile(active(), given);
    expect(verdictOn(effects)).toBe('ATTACHMENT_REINCARNATED');
    expect(events).toMatchObject([
      { kind: 'attachment-released' },
      { kind: 'vacated', reason: 'owner-lost' },
    ]);
  });
});

describe('a terminal that the world holds', () => {
  test('is released with its seat when the node lives anew', () => {
    const history = active();
    const { events } = reconcile(history, { dataIncarnation: ref('dn_second') });
    expect(events).toMatchObject([
      { kind: 'attachment-released', attachmentRef: 'at_demo' },
      { kind: 'vacated', workerRef: demoRef, reason: 'owner-lost' },
    ]);
    expect(history.state.world.workers.get(demoRef)?.occupancy).toBeUndefined();
  });

  test('is released when the inventory lacks it; a living occupant keeps its seat', () => {
    expect(reconcile(active(), {}).events).toMatchObject([{ kind: 'attachment-released' }]);
  });

  test('is released when the inventory lacks it; an awaited occupant loses its seat', () => {
    expect(reconcile(active().restart(), {}).events).toMatchObject([
      { kind: 'attachment-released' },
      { kind: 'vacated', reason: 'agent-unbound' },
    ]);
  });

  test('is active when it was reserved and the node carries it', () => {
    const history = reserved().restart();
    expect(reconcile(history, { carried: [carried()] }).events).toMatchObject([
      { kind: 'attachment-active', attachmentRef: 'at_demo' },
    ]);
  });

  test('is released when it was reserved and the node never started it', () => {
    expect(reconcile(reserved(), {}).events).toMatchObject([{ kind: 'attachment-released' }]);
  });

  test('on another node is not the inventory’s to judge', () => {
    expect(reconcile(active(), { node: 'elsewhere' }).events).toEqual([]);
  });

  test('of a closing worker is left to its fences', () => {
    const history = active().after(commands.close());
    expect(reconcile(history, { carried: [carried()] }).events).toEqual([]);
    expect(reconcile(history, {}).events).toEqual([]);
  });
});

describe('a connected node', () => {
  test('is told of the terminals that changed hands while it was away', () => {
    const history = active();
    history.unbind(demo);
    history.after(commands.bind({ asker: demo, peerRef: ref('pr_back') }));
    const { effects } = reconcile(history, { carried: [carried()] });
    expect(effects.map(({ kind }) => kind)).toEqual([
      'tell-reconciled',
      'tell-reattached',
      'resume-closings',
    ]);
    expect(effects[1]).toEqual({
      kind: 'tell-reattached',
      node,
      workerRef: demoRef,
      attachmentRef: 'at_demo',
      attachmentEpoch: 2n,
      carrierEpoch: 2n,
    });
  });

  test('is told of nothing that stands as it knows it', () => {
    const { effects } = reconcile(active(), { carried: [carried()] });
    expect(effects.map(({ kind }) => kind)).toEqual(['tell-reconciled', 'resume-closings']);
  });

  test('begins without presentations: those of its earlier stream died with it', () => {
    const history = presented();
    reconcile(history, { carried: [carried()] });
    expect(history.state.presence.presentations.size).toBe(0);
    expect(history.state.presence.nodes.get(node)).toEqual({
      dataIncarnation: 'dn_first',
      endpoint: '127.0.0.1:4000',
    });
  });

  test('may carry a generation’s worth of workers', () => {
    const { effects } = reconcile(active(), {
      carried: [
        carried(),
        carried({ workerGeneration: generation(9n), attachmentRef: ref('at_9') }),
      ],
    });
    expect(effects[0]).toMatchObject({
      verdicts: [
        { attachmentRef: 'at_demo', endReason: undefined },
        { attachmentRef: 'at_9', endReason: 'GENERATION_ADVANCED' },
      ],
    });
  });
});
