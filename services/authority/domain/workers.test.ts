import { describe, expect, test } from 'vitest';
import { ref } from '#kernel/refs.js';
import type { OpenWorker } from './command.js';
import {
  ada,
  bob,
  commands,
  demo,
  demoRef,
  endMs,
  History,
  low,
  occupied,
  opened,
  presented,
  reasonOf,
  reserved,
  roomy,
} from './history.js';

const another = { workerRef: ref<typeof demoRef>('wk_other'), name: 'other' };

function bound(): History {
  return new History().after(commands.bind(), commands.reconcile());
}

describe('opening a worker', () => {
  test('makes a position of the first generation, opened by the caller’s operator', () => {
    const history = bound();
    const outcome = history.decide(commands.open({ driveAllowed: true }));
    expect(outcome).toMatchObject({
      value: { events: [{ kind: 'worker-opened', name: 'demo', openedBy: 'ada' }], effects: [] },
    });
    expect(history.state.world.workers.get(demoRef)).toMatchObject({
      workerGeneration: 1n,
      standing: 'open',
      openedBy: 'ada',
      driveAllowed: true,
      delegationAllowed: false,
      occupancy: undefined,
    });
  });

  test.each([
    ['name', { name: '' }],
    ['name', { name: '-demo' }],
    ['name', { name: 'Demo' }],
    ['name', { name: 'a'.repeat(64) }],
    ['name', { name: 'de mo' }],
    ['actor', { actor: '../demo' }],
    ['dataNode', { node: 'lo/cal' }],
    ['workspace', { workspace: '' }],
    ['workspace', { workspace: 'work' }],
    ['workspace', { workspace: '/a\0b' }],
    ['workspace', { workspace: `/${'é'.repeat(2048)}` }],
  ] satisfies [string, Partial<OpenWorker>][])(
    'refuses a %s of another form: %j',
    (field, given) => {
      const outcome = bound().decide(commands.open(given));
      expect(outcome).toMatchObject({
        refusal: { reason: 'REQUEST_INVALID', facts: { field, rule: expect.any(String) } },
      });
    },
  );

  test.each([
    ['the longest name', { name: 'a'.repeat(63) }],
    ['the longest workspace', { workspace: `/${'a'.repeat(4095)}` }],
    ['every character a name may have', { name: '0a.b_c-9' }],
  ] satisfies [string, Partial<OpenWorker>][])('takes %s', (_what, given) => {
    expect(reasonOf(bound().decide(commands.open(given)))).toBe('granted');
  });

  test('refuses a name that is taken, and says how that worker stands', () => {
    const closed = opened().after(commands.close(), commands.finish);
    for (const [history, state] of [
      [opened(), 'open'],
      [closed, 'closed'],
    ] as const) {
      expect(history.decide(commands.open({ workerRef: another.workerRef }))).toMatchObject({
        refusal: { reason: 'WORKER_NAME_TAKEN', facts: { worker: 'demo', state } },
      });
    }
  });

  test('refuses an actor that another operator’s workers are for: its identity would come with it', () => {
    const history = opened();
    history.unbind(ada);
    history.after(commands.bind({ asker: bob }));
    const wanted = { ...another, asker: bob };
    expect(history.decide(commands.open(wanted))).toMatchObject({
      refusal: { reason: 'ACTOR_NOT_YOURS', facts: { actor: 'demo' } },
    });
    expect(reasonOf(history.decide(commands.open({ ...wanted, actor: 'other' })))).toBe('granted');
  });

  test('refuses more workers than there may be, closed ones included', () => {
    const history = opened().after(
      commands.open(another),
      commands.close({ workerRef: another.workerRef }),
      { kind: 'finish-closing', workerRef: another.workerRef },
      commands.open({ workerRef: ref('wk_third'), name: 'third' }),
    );
    const fourth = commands.open({ workerRef: ref('wk_fourth'), name: 'fourth' });
    expect(history.decide(fourth)).toMatchObject({
      refusal: { reason: 'WORKERS_EXHAUSTED', facts: { workersMax: '3' } },
    });
  });

  test('refuses on a nearly full disk', () => {
    expect(bound().decide(commands.open(), low)).toMatchObject({
      refusal: { reason: 'JOURNAL_FULL', facts: { freeBytes: '999' } },
    });
  });

  test('refuses an operator without a Bind, and one whose certificate has ended', () => {
    expect(reasonOf(new History().decide(commands.open()))).toBe('CONTROL_CHANNEL_NOT_BOUND');
    expect(reasonOf(bound().decide(commands.open(), { ...roomy, nowMs: endMs }))).toBe(
      'CERTIFICATE_EXPIRED',
    );
  });
});

describe('closing a worker', () => {
  test('begins with a fact from which on nothing resolves, and ends what is looked at', () => {
    const history = presented();
    const outcome = history.decide(commands.close());
    expect(outcome).toMatchObject({
      value: {
        events: [{ kind: 'worker-closing', workerRef: demoRef, closedBy: 'ada' }],
        effects: [{ kind: 'begin-closing', workerRef: demoRef }],
      },
    });
    expect(history.state.world.workers.get(demoRef)?.standing).toBe('closing');
    expect(history.state.presence.presentations.size).toBe(0);
  });

  test('is open to every bound operator, not only to the one who opened it', () => {
    const history = opened();
    history.unbind(ada);
    expect(reasonOf(history.decide(commands.close({ asker: bob })))).toBe(
      'CONTROL_CHANNEL_NOT_BOUND',
    );
    history.after(commands.bind({ asker: bob }));
    expect(reasonOf(history.decide(commands.close({ asker: bob })))).toBe('granted');
  });

  test('asked again while it runs, joins it', () => {
    const history = presented().after(commands.close());
    expect(history.decide(commands.close())).toMatchObject({ value: { events: [], effects: [] } });
  });

  test('works on a nearly full disk', () => {
    const history = presented();
    expect(reasonOf(history.decide(commands.close(), low))).toBe('granted');
    expect(reasonOf(history.decide(commands.finish, low))).toBe('granted');
  });

  test.each([
    ['WORKER_UNKNOWN', () => presented(), { workerRef: ref<typeof demoRef>('wk_0') }],
    ['WORKER_GENERATION_ADVANCED', () => presented(), { expectedGeneration: 2n as never }],
    ['WORKER_CLOSED', () => presented().after(commands.close(), commands.finish), {}],
  ] as const)('refuses %s', (reason, history, given) => {
    expect(reasonOf(history().decide(commands.close(given)))).toBe(reason);
  });

  test('ends by releasing the terminal, vacating the seat, then closing', () => {
    const history = presented().after(commands.close());
    expect(history.decide(commands.finish)).toMatchObject({
      value: {
        events: [
          { kind: 'attachment-released', attachmentRef: 'at_demo' },
          { kind: 'vacated', reason: 'worker-closed' },
          { kind: 'worker-closed' },
        ],
      },
    });
    expect(history.state.world.workers.get(demoRef)).toMatchObject({
      standing: 'closed',
      occupancy: undefined,
    });
  });

  test('ends once', () => {
    const history = presented().after(commands.close(), commands.finish);
    expect(history.decide(commands.finish)).toMatchObject({ value: { events: [] } });
    expect(opened().decide(commands.finish)).toMatchObject({ value: { events: [] } });
  });

  test('keeps a bound agent out of its seat', () => {
    const history = occupied().after(commands.close());
    expect(reasonOf(history.decide(commands.reserve()))).toBe('WORKER_CLOSED');
    expect(reasonOf(history.decide(commands.occupy()))).toBe('WORKER_CLOSED');
  });

  test('of a terminal that is only reserved has it to fence', () => {
    const history = reserved().after(commands.close());
    expect(history.state.world.workers.get(demoRef)?.occupancy?.attachment?.phase).toBe('reserved');
  });
});

describe('reopening a worker', () => {
  function closed(): History {
    return presented().after(commands.close(), commands.finish);
  }

  test('makes it anew, one generation later, still opened by who opened it', () => {
    const history = closed().after(commands.reopen());
    expect(history.state.world.workers.get(demoRef)).toMatchObject({
      standing: 'open',
      workerGeneration: 2n,
      openedBy: 'ada',
      occupancy: undefined,
    });
  });

  test('refuses while it is still being closed', () => {
    const history = presented().after(commands.close());
    expect(reasonOf(history.decide(commands.reopen()))).toBe('WORKER_CLOSING');
  });

  test('refuses an open one, a stale generation and an unknown one', () => {
    expect(reasonOf(opened().decide(commands.reopen()))).toBe('WORKER_NOT_CLOSED');
    const stale = commands.reopen({ expectedGeneration: 9n as never });
    expect(reasonOf(closed().decide(stale))).toBe('WORKER_GENERATION_ADVANCED');
    const unknown = commands.reopen({ workerRef: ref('wk_0') });
    expect(reasonOf(closed().decide(unknown))).toBe('WORKER_UNKNOWN');
  });

  test('P4: refuses every operator but the one who opened it', () => {
    const history = closed();
    history.unbind(ada);
    history.after(commands.bind({ asker: bob }));
    expect(reasonOf(history.decide(commands.reopen({ asker: bob })))).toBe(
      'WORKER_NOT_OPENED_BY_CALLER',
    );
  });

  test('refuses on a nearly full disk', () => {
    expect(reasonOf(closed().decide(commands.reopen(), low))).toBe('JOURNAL_FULL');
  });

  test('P4: who opened it is the operator, not the peer: a new life of it may', () => {
    const history = closed();
    history.unbind(ada);
    history.after(commands.bind({ peerRef: ref('pr_later') }));
    expect(reasonOf(history.decide(commands.reopen()))).toBe('granted');
  });

  test('an agent may ask for none of it', () => {
    const history = presented();
    for (const command of [commands.open(another), commands.close(), commands.reopen()]) {
      const asked = { ...command, asker: { ...demo, lineage: ref<never>('unbound') } };
      expect(reasonOf(history.decide(asked))).toBe('AGENT_CHANNEL_NOT_BOUND');
    }
  });
});
