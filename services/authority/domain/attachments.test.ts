import { describe, expect, test } from 'vitest';
import { ref } from '#kernel/refs.js';
import {
  active,
  commands,
  demo,
  demoRef,
  low,
  node,
  occupied,
  opened,
  presented,
  reasonOf,
  reserved,
} from './history.js';
import { nodeGone } from './presence.js';

describe('reserving a terminal', () => {
  test('names it before it is started, for the life of the node that will host it', () => {
    expect(occupied().decide(commands.reserve())).toMatchObject({
      value: {
        events: [
          {
            kind: 'attachment-reserved',
            workerRef: demoRef,
            attachmentRef: 'at_demo',
            attachmentEpoch: 1n,
            ptyEpoch: 1n,
            dataIncarnation: 'dn_first',
          },
        ],
      },
    });
  });

  test('refuses an occupant that has one, reserved or running', () => {
    const another = commands.reserve({ attachmentRef: ref('at_other') });
    expect(reasonOf(reserved().decide(another))).toBe('CARRIER_ALREADY_ATTACHED');
    expect(reasonOf(active().decide(another))).toBe('CARRIER_ALREADY_ATTACHED');
  });

  test('refuses on another node, while the node is away, and on a nearly full disk', () => {
    expect(reasonOf(occupied().decide(commands.reserve({ node: 'elsewhere' })))).toBe(
      'NOT_CARRIED_HERE',
    );
    expect(reasonOf(occupied().decide(commands.reserve(), low))).toBe('JOURNAL_FULL');
    const away = occupied();
    away.passes(({ presence }) => ({ state: nodeGone(presence, node), effects: [] }));
    expect(reasonOf(away.decide(commands.reserve()))).toBe('OWNER_UNREACHABLE');
  });

  test('refuses an agent that does not sit there', () => {
    const history = opened().after(commands.bind({ asker: demo }));
    expect(reasonOf(history.decide(commands.reserve()))).toBe('WORKER_NOT_YOURS');
  });
});

describe('activating a terminal', () => {
  test('is recorded once', () => {
    const history = reserved();
    expect(history.decide(commands.activate, low)).toMatchObject({
      value: { events: [{ kind: 'attachment-active', attachmentRef: 'at_demo' }] },
    });
    expect(history.decide(commands.activate)).toMatchObject({ value: { events: [] } });
  });

  test('is refused when the terminal is gone, or another node’s', () => {
    const gone = reserved();
    gone.unbind(demo);
    gone.after(commands.vacate());
    expect(reasonOf(gone.decide(commands.activate))).toBe('CARRIER_NOT_ATTACHED');
    const foreign = { ...commands.activate, node: 'elsewhere' };
    expect(reasonOf(reserved().decide(foreign))).toBe('CARRIER_NOT_ATTACHED');
  });

  test('of a closing worker is recorded: it runs, and is fenced', () => {
    const history = reserved().after(commands.close());
    expect(reasonOf(history.decide(commands.activate))).toBe('granted');
  });
});

describe('releasing a terminal', () => {
  test('leaves the occupant in its seat while its peer lives', () => {
    const history = active();
    expect(history.decide(commands.release(), low)).toMatchObject({
      value: { events: [{ kind: 'attachment-released' }], effects: [] },
    });
    expect(reasonOf(history.present())).toBe('CARRIER_NOT_ATTACHED');
    const peerRef = 'pr_first-run';
    expect(history.unbind(demo)).toEqual([{ kind: 'vacate', workerRef: demoRef, peerRef }]);
  });

  test('empties the seat of an occupant that is only awaited', () => {
    const history = active();
    history.unbind(demo);
    expect(history.decide(commands.release())).toMatchObject({
      value: {
        events: [{ kind: 'attachment-released' }, { kind: 'vacated', reason: 'agent-unbound' }],
      },
    });
  });

  test('ends the look at it', () => {
    const history = presented();
    expect(history.decide(commands.release())).toMatchObject({
      value: {
        effects: [{ kind: 'fence', node, scope: 'PRESENTATIONS', reason: 'RELEASED' }],
      },
    });
    expect(history.state.presence.presentations.size).toBe(0);
  });

  test('of what is not held, or is another node’s, changes nothing', () => {
    for (const given of [{ attachmentRef: ref<never>('at_0') }, { node: 'elsewhere' }]) {
      const history = active();
      const outcome = history.decide(commands.release(given));
      expect(outcome).toMatchObject({ value: { events: [], effects: [] } });
    }
  });

  test('makes room for another', () => {
    const history = active().after(commands.release());
    const another = commands.reserve({ attachmentRef: ref('at_other') });
    expect(reasonOf(history.decide(another))).toBe('granted');
  });
});
