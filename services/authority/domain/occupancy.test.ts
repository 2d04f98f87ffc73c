import { describe, expect, test } from 'vitest';
import { ref } from '#kernel/refs.js';
import {
  active,
  commands,
  demo,
  demoAgain,
  demoRef,
  low,
  node,
  occupied,
  opened,
  reasonOf,
  reserved,
  stranger,
} from './history.js';
import { nodeGone } from './presence.js';

describe('sitting down', () => {
  test('makes the caller’s peer the occupant, hosted by a new carrier', () => {
    const history = opened().after(commands.bind({ asker: demo }));
    expect(history.decide(commands.occupy())).toMatchObject({
      value: {
        events: [
          {
            kind: 'occupied',
            workerRef: demoRef,
            peerRef: 'pr_first-run',
            lineage: 'first-run',
            carrierRef: 'cr_demo',
            carrierEpoch: 1n,
          },
        ],
      },
    });
  });

  test('again changes nothing', () => {
    const again = commands.occupy({ carrierRef: ref('cr_other') });
    expect(occupied().decide(again)).toMatchObject({ value: { events: [] } });
  });

  test('refuses foreign and unknown workers alike', () => {
    const history = opened().after(commands.bind({ asker: stranger }));
    const foreign = history.decide(commands.occupy({ asker: stranger }));
    const unknown = history.decide(commands.occupy({ asker: stranger, workerRef: ref('wk_0') }));
    expect(reasonOf(foreign)).toBe('WORKER_NOT_YOURS');
    expect(foreign).toEqual(unknown);
  });

  test('refuses an agent without a Bind', () => {
    expect(reasonOf(opened().decide(commands.occupy()))).toBe('AGENT_CHANNEL_NOT_BOUND');
  });

  test('refuses a seat that another run of the actor has, and one that is only awaited', () => {
    const history = active().after(commands.bind({ asker: demoAgain }));
    const wanted = commands.occupy({ asker: demoAgain });
    expect(reasonOf(history.decide(wanted))).toBe('LOCUS_OCCUPIED');
    history.unbind(demo);
    expect(reasonOf(history.decide(wanted))).toBe('LOCUS_OCCUPIED');
    history.after(commands.vacate());
    expect(reasonOf(history.decide(wanted))).toBe('granted');
  });

  test('refuses a closed worker and a stale generation', () => {
    const closed = opened().after(
      commands.bind({ asker: demo }),
      commands.close(),
      commands.finish,
    );
    expect(reasonOf(closed.decide(commands.occupy()))).toBe('WORKER_CLOSED');
    closed.after(commands.reopen());
    expect(reasonOf(closed.decide(commands.occupy()))).toBe('WORKER_GENERATION_ADVANCED');
  });

  test('refuses while the worker’s node is away', () => {
    const history = opened().after(commands.bind({ asker: demo }));
    history.passes(({ presence }) => ({ state: nodeGone(presence, node), effects: [] }));
    expect(history.decide(commands.occupy())).toMatchObject({
      refusal: { reason: 'OWNER_UNREACHABLE', facts: { node } },
    });
  });

  test('refuses on a nearly full disk', () => {
    const history = opened().after(commands.bind({ asker: demo }));
    expect(reasonOf(history.decide(commands.occupy(), low))).toBe('JOURNAL_FULL');
  });
});

describe('leaving', () => {
  test('an agent without a terminal leaves its seat at once', () => {
    for (const history of [occupied(), reserved()]) {
      const peerRef = 'pr_first-run';
      expect(history.unbind(demo)).toEqual([{ kind: 'vacate', workerRef: demoRef, peerRef }]);
    }
  });

  test('an agent with a running terminal is awaited', () => {
    const peerRef = 'pr_first-run';
    expect(active().unbind(demo)).toEqual([{ kind: 'begin-grace', workerRef: demoRef, peerRef }]);
  });

  test('a vacated seat takes its terminal along, which its node is told', () => {
    const history = active();
    history.unbind(demo);
    expect(history.decide(commands.vacate(), low)).toEqual({
      kind: 'granted',
      value: {
        events: [
          { kind: 'attachment-released', workerRef: demoRef, attachmentRef: 'at_demo' },
          { kind: 'vacated', workerRef: demoRef, reason: 'agent-unbound' },
        ],
        effects: [
          {
            kind: 'fence',
            node,
            workerRef: demoRef,
            scope: 'POSSESSION',
            reason: 'AGENT_UNBOUND',
          },
        ],
      },
    });
  });

  test('a seat without a terminal has nothing to fence', () => {
    const history = occupied();
    history.unbind(demo);
    expect(history.decide(commands.vacate())).toMatchObject({ value: { effects: [] } });
  });

  test('a seat is not vacated under an occupant that is back, or under another', () => {
    expect(active().decide(commands.vacate())).toMatchObject({ value: { events: [] } });
    const back = active();
    back.unbind(demo);
    back.after(commands.bind({ asker: demo, peerRef: ref('pr_back') }));
    expect(back.decide(commands.vacate())).toMatchObject({ value: { events: [] } });
    const stale = commands.vacate({ workerRef: ref('wk_0') });
    expect(active().decide(stale)).toMatchObject({ value: { events: [] } });
  });

  test('a wait for an earlier occupant does not end the wait for a later one', () => {
    const history = active();
    history.unbind(demo);
    history.after(commands.vacate(), commands.bind({ asker: demoAgain }));
    history.after(commands.occupy({ asker: demoAgain }), commands.reserve({ asker: demoAgain }));
    history.after(commands.activate);
    history.unbind(demoAgain);
    expect(history.decide(commands.vacate())).toMatchObject({ value: { events: [] } });
  });

  test('a closing worker’s seat is its closing’s to empty', () => {
    const history = active().after(commands.close());
    expect(history.unbind(demo)).toEqual([]);
    expect(history.decide(commands.vacate())).toMatchObject({ value: { events: [] } });
  });
});
