import { describe, expect, test } from 'vitest';
import type { Clock } from '#kernel/clock.js';
import { granted, type Outcome, refused } from '#kernel/outcome.js';
import { ref } from '#kernel/refs.js';
import { Authority, type Store } from './authority.js';
import type { Settled } from './domain/deciding.js';
import {
  ada,
  commands,
  demo,
  demoRef,
  presentQuestion,
  reasonOf,
  roomy,
} from './domain/history.js';
import { bindGone } from './domain/presence.js';
import type { WorldEvent } from './domain/world.js';

/** Keeps commits as they come; can be full, or broken. */
class RememberingStore implements Store {
  readonly commits: (readonly WorldEvent[])[] = [];
  isFull = false;
  breaks = false;

  events(): Iterable<WorldEvent> {
    return this.commits.flat();
  }

  append(events: readonly WorldEvent[]): Outcome<undefined> {
    if (this.breaks) {
      throw new Error('the disk is gone');
    }
    if (this.isFull) {
      return refused('JOURNAL_FULL', { freeBytes: '0' });
    }
    this.commits.push(events);
    return granted(undefined);
  }

  freeBytes(): number {
    return roomy.journalFreeBytes;
  }
}

/** A clock whose timers wait until they are rung. */
class RungClock implements Clock {
  readonly due: (() => void)[] = [];

  now(): number {
    return 0;
  }

  monotonic(): number {
    return 0;
  }

  after(_delayMs: number, call: () => void): Disposable {
    this.due.push(call);
    return { [Symbol.dispose]: () => undefined };
  }

  ring(): void {
    for (const call of this.due.splice(0)) {
      call();
    }
  }
}

function begin() {
  const store = new RememberingStore();
  const clock = new RungClock();
  const authority = new Authority({ store, clock, limits: roomy.limits, retryMs: 1 });
  const performed: string[] = [];
  authority.onEffect((effect, epoch) => performed.push(`${effect.kind} ${epoch}`));
  return { store, clock, authority, performed };
}

const tick = (): Promise<void> =>
  new Promise((resolve) => setImmediate(() => setImmediate(resolve)));

describe('group commit', () => {
  test('commands of one tick are decided in order, each on what the one before it left, in one commit', async () => {
    const { store, authority } = begin();
    const outcomes = [
      commands.bind(),
      commands.open(),
      commands.open(),
      commands.close(),
      commands.finish,
    ].map((command) => authority.ask(command));
    expect((await Promise.all(outcomes)).map(reasonOf)).toEqual([
      'granted',
      'granted',
      'WORKER_NAME_TAKEN',
      'granted',
      'granted',
    ]);
    expect(store.commits.map((events) => events.map(({ kind }) => kind))).toEqual([
      ['control-bound', 'worker-opened', 'worker-closing', 'worker-closed'],
    ]);
  });

  test('each is answered with the state right after it, not with what came later in the tick', async () => {
    const { authority } = begin();
    const [, opened] = await Promise.all([
      authority.ask(commands.bind()),
      authority.ask(commands.open()),
      authority.ask(commands.close()),
    ]);
    const standing = (outcome: Outcome<Settled>): unknown =>
      outcome.kind === 'granted' && outcome.value.state.world.workers.get(demoRef)?.standing;
    expect(standing(opened)).toBe('open');
    expect(authority.state.world.workers.get(demoRef)?.standing).toBe('closing');
  });

  test('nobody is answered, and nothing is seen, before the commit', async () => {
    const { store, authority } = begin();
    const seen: string[] = [];
    const append = store.append.bind(store);
    store.append = (events) => {
      seen.push(`commit, ${authority.state.world.workers.size} workers`);
      return append(events);
    };
    authority.submit(commands.bind(), () => undefined);
    authority.submit(commands.open(), () => seen.push('answered'));
    expect(authority.state.world.workers.size).toBe(0);
    await tick();
    expect(seen).toEqual(['commit, 0 workers', 'answered']);
  });

  test('answers and effects come in the order of their epochs', async () => {
    const { authority, performed } = begin();
    for (const command of [
      commands.bind(),
      commands.open(),
      commands.close(),
      commands.reconcile(),
    ]) {
      authority.submit(command, (outcome) => {
        performed.push(outcome.kind === 'granted' ? `settled ${outcome.value.epoch}` : 'refused');
      });
    }
    await tick();
    expect(performed).toEqual([
      'settled 1',
      'settled 2',
      'settled 3',
      'begin-closing 3',
      'settled 4',
      'tell-reconciled 4',
      'resume-closings 4',
    ]);
  });

  test('what an effect brings about waits until the effects before it are done', async () => {
    const { authority, performed } = begin();
    authority.onEffect((effect, epoch) => {
      performed.push(`${effect.kind} ${epoch}`);
      if (effect.kind === 'tell-reconciled') {
        authority.apply(({ presence }) => ({
          state: presence,
          effects: [{ kind: 'resume-closings', node: 'another' }],
        }));
      }
    });
    await authority.ask(commands.reconcile());
    expect(performed).toEqual(['tell-reconciled 1', 'resume-closings 1', 'resume-closings 2']);
  });
});

describe('a commit that fails', () => {
  test('for want of space does not refuse what needs no disk, though a neighbour of its tick does', async () => {
    const { store, authority } = begin();
    await authority.ask(commands.bind());
    store.isFull = true;
    const outcomes = await Promise.all(
      [commands.open(), commands.bind({ asker: demo })].map((each) => authority.ask(each)),
    );
    expect(outcomes.map(reasonOf)).toEqual(['JOURNAL_FULL', 'granted']);
    expect(authority.state.presence.peers.has(demo.lineage)).toBe(true);
    expect(authority.state.world.workers.size).toBe(0);
    expect(store.commits).toHaveLength(1);
  });

  test('for want of space refuses every fact of the tick, and leaves the state as it was', async () => {
    const { store, authority, performed } = begin();
    store.isFull = true;
    const before = authority.state;
    const outcomes = await Promise.all(
      [commands.bind(), commands.open(), commands.reopen()].map((each) => authority.ask(each)),
    );
    expect(outcomes.map(reasonOf)).toEqual([
      'JOURNAL_FULL',
      'JOURNAL_FULL',
      'CONTROL_CHANNEL_NOT_BOUND',
    ]);
    expect(authority.state).toBe(before);
    expect(authority.epoch).toBe(0n);
    expect(performed).toEqual([]);
    store.isFull = false;
    expect(reasonOf(await authority.ask(commands.bind()))).toBe('granted');
  });

  test('for want of space is tried again for what must not be lost', async () => {
    const { store, clock, authority } = begin();
    const durable: string[] = [];
    await Promise.all([authority.ask(commands.bind()), authority.ask(commands.open())]);
    await authority.ask(commands.close());
    store.isFull = true;
    authority.insist(commands.finish, () => durable.push('closed'));
    for (let count = 0; count < 3; count += 1) {
      await tick();
      clock.ring();
    }
    expect(durable).toEqual([]);
    store.isFull = false;
    await tick();
    expect(durable).toEqual(['closed']);
    expect(authority.state.world.workers.get(demoRef)?.standing).toBe('closed');
  });

  test('in any other way ends the process: it is thrown where nothing catches it', async () => {
    const { store, authority } = begin();
    store.breaks = true;
    const listeners = process.rawListeners('uncaughtException');
    process.removeAllListeners('uncaughtException');
    const ending = new Promise<unknown>((resolve) => process.once('uncaughtException', resolve));
    authority.submit(commands.bind(), () => undefined);
    expect(String(await ending)).toContain('the disk is gone');
    for (const listener of listeners) {
      process.on('uncaughtException', listener as NodeJS.UncaughtExceptionListener);
    }
  });
});

describe('what lives only in memory', () => {
  test('changes at once, with an epoch of its own, and is not committed', async () => {
    const { store, authority, performed } = begin();
    await Promise.all(
      [
        commands.bind(),
        commands.reconcile(),
        commands.open(),
        commands.bind({ asker: demo }),
        commands.occupy(),
        commands.reserve(),
        commands.activate,
      ].map((each) => authority.ask(each)),
    );
    const commits = store.commits.length;
    const { epoch } = authority;
    expect(reasonOf(authority.present(presentQuestion()))).toBe('granted');
    expect(authority.epoch).toBe(epoch + 1n);
    expect(reasonOf(authority.present(presentQuestion({ presentation: 2n })))).toBe(
      'PRESENTATION_EXISTS',
    );
    expect(authority.epoch).toBe(epoch + 1n);
    performed.length = 0;
    authority.apply(({ presence, world }) => bindGone(presence, world, ref('pr_ada-certificate')));
    expect(performed).toEqual([`fence ${epoch + 2n}`]);
    expect(store.commits.length).toBe(commits);
  });

  test('that did not change makes no epoch', () => {
    const { authority } = begin();
    authority.apply(({ presence, world }) => bindGone(presence, world, ref('pr_0')));
    expect(authority.epoch).toBe(0n);
  });

  test('whoever follows hears of every change until they stop', async () => {
    const { authority } = begin();
    let changes = 0;
    const following = authority.follow(() => {
      changes += 1;
    });
    await authority.ask(commands.bind());
    following[Symbol.dispose]();
    authority.apply(({ presence, world }) => bindGone(presence, world, ref('pr_ada-certificate')));
    expect(changes).toBe(1);
    expect(authority.state.presence.peers.has(ada.lineage)).toBe(false);
  });
});

test('a halted authority decides nothing more', async () => {
  const { store, authority } = begin();
  authority.submit(commands.bind(), () => store.commits.push([]));
  authority.halt();
  authority.submit(commands.bind(), () => store.commits.push([]));
  await tick();
  expect(store.commits).toEqual([]);
});

test('a new process begins with the world that the store holds', async () => {
  const { store, clock, authority } = begin();
  await Promise.all([authority.ask(commands.bind()), authority.ask(commands.open())]);
  const again = new Authority({ store, clock, limits: roomy.limits, retryMs: 1 });
  expect(again.state.world).toEqual(authority.state.world);
  expect(again.state.presence.peers.size).toBe(0);
});
