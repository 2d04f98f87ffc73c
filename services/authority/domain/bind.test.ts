import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { type Lineage, ref } from '#kernel/refs.js';
import {
  active,
  ada,
  bob,
  commands,
  demo,
  demoAgain,
  demoRef,
  endMs,
  History,
  node,
  presented,
  reasonOf,
} from './history.js';
import { type Asker, controlPeer, endExpired, livingPeer } from './presence.js';

describe('an operator’s Bind', () => {
  test('begins a peer, which is recorded by the operator’s name', () => {
    expect(new History().decide(commands.bind())).toMatchObject({
      value: {
        events: [{ kind: 'control-bound', operator: 'ada', peerRef: 'pr_ada-certificate' }],
      },
    });
  });

  test('joins the living peer of its lineage, and records nothing', () => {
    const history = new History().after(commands.bind());
    const again = commands.bind({ peerRef: ref('pr_again') });
    expect(history.decide(again)).toMatchObject({ value: { events: [] } });
    expect(history.state.presence.peers.get(ada.lineage)).toMatchObject({
      peerRef: 'pr_ada-certificate',
      streamCount: 2,
    });
  });

  test('is refused while another lineage’s peer lives, the same operator’s included', () => {
    const history = new History().after(commands.bind());
    const other: Asker = { ...ada, lineage: ref<Lineage>('another-certificate') };
    expect(reasonOf(history.decide(commands.bind({ asker: bob })))).toBe(
      'CONTROL_CHANNEL_OCCUPIED',
    );
    expect(reasonOf(history.decide(commands.bind({ asker: other })))).toBe(
      'CONTROL_CHANNEL_OCCUPIED',
    );
  });

  test('ends with its last stream, and not before', () => {
    const history = new History().after(commands.bind(), commands.bind());
    history.unbind(ada);
    expect(controlPeer(history.state.presence)?.name).toBe('ada');
    history.unbind(ada);
    expect(controlPeer(history.state.presence)).toBeUndefined();
    expect(reasonOf(history.decide(commands.bind({ asker: bob })))).toBe('granted');
  });

  test('when it ends, everything it looks at is fenced', () => {
    const history = presented();
    expect(history.unbind(ada)).toEqual([
      {
        kind: 'fence',
        node,
        workerRef: demoRef,
        scope: 'PRESENTATIONS',
        reason: 'CONTROL_UNBOUND',
      },
    ]);
    expect(history.state.presence.presentations.size).toBe(0);
  });

  test('P8: when it ends, the possession stays', () => {
    const history = presented();
    history.unbind(ada);
    expect(history.state.world.workers.get(demoRef)?.occupancy?.attachment?.phase).toBe('active');
  });
});

describe('an agent’s Bind', () => {
  test('two runs of one actor are two peers', () => {
    const history = new History().after(
      commands.bind({ asker: demo }),
      commands.bind({ asker: demoAgain }),
    );
    expect(history.state.presence.peers.size).toBe(2);
  });

  test('when it ends, the operator’s look at its terminal is fenced before the wait begins', () => {
    expect(presented().unbind(demo)).toMatchObject([
      { kind: 'fence', scope: 'PRESENTATIONS', reason: 'AGENT_UNBOUND' },
      { kind: 'begin-grace', workerRef: demoRef },
    ]);
  });

  test('of the lineage that is awaited takes the seat back: both epochs grow, the terminal stays', () => {
    const history = active();
    history.unbind(demo);
    const peerRef = ref<never>('pr_back');
    expect(history.decide(commands.bind({ asker: demo, peerRef }))).toEqual({
      kind: 'granted',
      value: {
        events: [
          {
            kind: 'reoccupied',
            workerRef: demoRef,
            peerRef: 'pr_back',
            carrierEpoch: 2n,
            attachmentEpoch: 2n,
          },
        ],
        effects: [
          {
            kind: 'tell-reattached',
            node,
            workerRef: demoRef,
            attachmentRef: 'at_demo',
            attachmentEpoch: 2n,
            carrierEpoch: 2n,
          },
        ],
      },
    });
  });

  test('of the awaited lineage after a restart takes a seat without a terminal back too', () => {
    const history = active().after(commands.release()).restart();
    const peerRef = ref<never>('pr_back');
    expect(history.decide(commands.bind({ asker: demo, peerRef }))).toMatchObject({
      value: { events: [{ kind: 'reoccupied', attachmentEpoch: undefined }], effects: [] },
    });
  });

  test('of another run of the actor takes nothing', () => {
    const history = active();
    history.unbind(demo);
    expect(history.decide(commands.bind({ asker: demoAgain }))).toMatchObject({
      value: { events: [], effects: [] },
    });
  });

  test('takes no seat of a worker that is being closed', () => {
    const history = active().after(commands.close());
    history.unbind(demo);
    expect(history.decide(commands.bind({ asker: demo }))).toMatchObject({ value: { events: [] } });
  });
});

describe('a peer’s newest certificate', () => {
  test('ends the peer, its streams by name, and what hangs on it', () => {
    const history = presented();
    const effects = history.passes(({ presence, world }) => endExpired(presence, world, endMs));
    expect(effects).toMatchObject([
      { kind: 'fence', scope: 'PRESENTATIONS', reason: 'CONTROL_UNBOUND' },
      {
        kind: 'refuse-binds',
        lineage: ada.lineage,
        refusal: {
          reason: 'CERTIFICATE_EXPIRED',
          facts: { expiredAt: '1970-01-01T01:00:00.000Z' },
        },
      },
      { kind: 'begin-grace' },
      { kind: 'refuse-binds', lineage: demo.lineage },
    ]);
    expect(history.state.presence.peers.size).toBe(0);
  });

  test('is the one that counts: an older connection goes on', () => {
    const history = new History().after(commands.bind());
    const newer = { ...ada, notAfterMs: endMs * 2 };
    history.after(commands.bind({ asker: newer }));
    expect(reasonOf(livingPeer(history.state.presence, ada, endMs))).toBe('granted');
    const effects = history.passes(({ presence, world }) => endExpired(presence, world, endMs));
    expect(effects).toEqual([]);
  });

  test('issued before a break counts after it', () => {
    const history = new History().after(commands.bind(), {
      kind: 'renew',
      asker: ada,
      issued: { fingerprint: 'newer', notAfterMs: endMs * 2 },
    });
    history.restart().after(commands.bind());
    expect(history.state.presence.peers.get(ada.lineage)?.notAfterMs).toBe(endMs * 2);
  });

  test('past its end, an unbound caller is told so rather than to bind', () => {
    const { presence } = new History().state;
    expect(reasonOf(livingPeer(presence, ada, endMs))).toBe('CERTIFICATE_EXPIRED');
  });
});

test('at most one human-control peer lives, after any interleaving of binds, ends and renewals', () => {
  const operators = ['ada', 'bob', 'eve'].flatMap((name): Asker[] =>
    ['one', 'two'].map((certificate) => ({
      role: 'human-control',
      name,
      lineage: ref<Lineage>(`${name}-${certificate}`),
      notAfterMs: endMs,
    })),
  );
  const act = fc.record({
    what: fc.constantFrom('bind', 'unbind', 'renew', 'expire'),
    who: fc.constantFrom(...operators),
    atMs: fc.integer({ min: 0, max: endMs * 2 }),
  });
  fc.assert(
    fc.property(fc.array(act, { maxLength: 40 }), (acts) => {
      const history = new History();
      for (const [turn, { what, who, atMs }] of acts.entries()) {
        if (what === 'bind') {
          history.decide(commands.bind({ asker: who, peerRef: ref(`pr_${turn}`) }));
        } else if (what === 'unbind') {
          history.unbind(who);
        } else if (what === 'renew') {
          const issued = { fingerprint: `c${turn}`, notAfterMs: atMs };
          history.decide({ kind: 'renew', asker: who, issued });
        } else {
          history.passes(({ presence, world }) => endExpired(presence, world, atMs));
        }
        const living = [...history.state.presence.peers.values()].filter(
          ({ role }) => role === 'human-control',
        );
        expect(living.length).toBeLessThanOrEqual(1);
        expect(living.every(({ streamCount }) => streamCount > 0)).toBe(true);
      }
    }),
  );
});

describe('living identities are counted', () => {
  test('an agent beyond them is refused PEERS_EXHAUSTED; the operator never is', () => {
    const history = new History();
    for (const lineage of ['a', 'b', 'c', 'd']) {
      history.after(commands.bind({ asker: { ...demo, lineage: ref<Lineage>(lineage) } }));
    }
    const fifth = commands.bind({ asker: { ...demo, lineage: ref<Lineage>('e') } });
    expect(reasonOf(history.decide(fifth))).toBe('PEERS_EXHAUSTED');
    expect(reasonOf(history.decide(commands.bind()))).toBe('granted');
  });

  test('a stream of a peer beyond them is refused PEERS_EXHAUSTED, and the peer lives on', () => {
    const history = new History().after(commands.bind(), commands.bind(), commands.bind());
    expect(reasonOf(history.decide(commands.bind()))).toBe('PEERS_EXHAUSTED');
    expect(controlPeer(history.state.presence)).toMatchObject({ streamCount: 3 });
  });
});
