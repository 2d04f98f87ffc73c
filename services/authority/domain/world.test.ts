import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { epoch, generation, ref } from '#kernel/refs.js';
import type { Command } from './command.js';
import {
  active,
  ada,
  asker,
  bob,
  carried,
  commands,
  demo,
  demoAgain,
  endMs,
  History,
  low,
  node,
  occupied,
  opened,
  presented,
  reserved,
  roomy,
} from './history.js';
import { type Asker, endExpired, nodeGone } from './presence.js';
import { resolve } from './resolve.js';
import type { State } from './state.js';
import { emptyWorld, evolve, type World } from './world.js';

const names = ['demo', 'other'] as const;
const agents = [demo, demoAgain, asker('agent', 'other', 'other-run')];
const operators = [ada, bob];

/** Everything that can happen to a small world, sensible or not. */
type Happening =
  | { readonly kind: 'command'; readonly command: Command; readonly isDiskLow: boolean }
  | { readonly kind: 'unbind'; readonly who: Asker }
  | { readonly kind: 'node-gone' }
  | { readonly kind: 'expire'; readonly nowMs: number }
  | {
      readonly kind: 'present';
      readonly name: string;
      readonly who: Asker;
      readonly replace: boolean;
    }
  | { readonly kind: 'restart' };

const name = fc.constantFrom('demo', 'demo', 'demo', 'other');
const workerRef = name.map((each) => ref<never>(`wk_${each}`));
const attachmentRef = name.map((each) => ref<never>(`at_${each}`));
const expectedGeneration = fc.constantFrom(1n, 1n, 2n, 3n).map(generation);
const operator = fc.constantFrom(...operators);
const agent = fc.constantFrom(...agents);
const carriedTerminal = fc
  .record({ workerRef, attachmentRef, attachmentEpoch: fc.constantFrom(1n, 2n) })
  .map((each) => carried({ ...each, attachmentEpoch: epoch(each.attachmentEpoch) }));

const command: fc.Arbitrary<Command> = fc.oneof(
  fc.oneof(operator, agent).map((each) => commands.bind({ asker: each })),
  name.map((each) =>
    commands.open({ name: each, actor: each, workerRef: ref(`wk_${each}`), locusRef: ref('lc') }),
  ),
  fc.record({ asker: operator, workerRef, expectedGeneration }).map((each) => commands.close(each)),
  workerRef.map((each): Command => ({ kind: 'finish-closing', workerRef: each })),
  fc
    .record({ asker: operator, workerRef, expectedGeneration })
    .map((each) => commands.reopen(each)),
  fc.record({ asker: agent, workerRef, expectedGeneration }).map((each) => commands.occupy(each)),
  workerRef.map((each) => commands.vacate({ workerRef: each })),
  fc
    .record({ asker: agent, workerRef, expectedGeneration, attachmentRef })
    .map((each) => commands.reserve(each)),
  attachmentRef.map((each): Command => ({ kind: 'activate', node, attachmentRef: each })),
  attachmentRef.map((each) => commands.release({ attachmentRef: each })),
  fc
    .record({
      dataIncarnation: fc
        .constantFrom('dn_first', 'dn_first', 'dn_second')
        .map((each) => ref<never>(each)),
      carried: fc.array(carriedTerminal, { maxLength: 2 }),
    })
    .map((each) => commands.reconcile(each)),
);

const happening: fc.Arbitrary<Happening> = fc.oneof(
  {
    weight: 12,
    arbitrary: fc.record({
      kind: fc.constant('command' as const),
      command,
      isDiskLow: fc.constant(false),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      kind: fc.constant('command' as const),
      command,
      isDiskLow: fc.constant(true),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({ kind: fc.constant('unbind' as const), who: fc.oneof(operator, agent) }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('node-gone' as const) }) },
  {
    weight: 1,
    arbitrary: fc.record({
      kind: fc.constant('expire' as const),
      nowMs: fc.constantFrom(0, endMs),
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      kind: fc.constant('present' as const),
      name,
      who: operator,
      replace: fc.boolean(),
    }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('restart' as const) }) },
);

function happen(history: History, each: Happening, turn: number): void {
  switch (each.kind) {
    case 'command':
      history.decide(timely(history, each.command, turn), each.isDiskLow ? low : roomy);
      return;
    case 'unbind':
      history.unbind(each.who);
      return;
    case 'node-gone':
      history.passes(({ presence }) => ({ state: nodeGone(presence, node), effects: [] }));
      return;
    case 'expire':
      history.passes(({ presence, world }) => endExpired(presence, world, each.nowMs));
      return;
    case 'present':
      history.present({
        asker: each.who,
        workerRef: ref(`wk_${each.name}`),
        presentation: BigInt(turn + 1),
        replace: each.replace,
      });
      return;
    case 'restart':
      history.restart();
  }
}

/** Peers are named when they begin, and the one to be awaited in vain is whoever sits there. */
function timely(history: History, given: Command, turn: number): Command {
  if (given.kind === 'bind') {
    return { ...given, peerRef: ref(`pr_${turn}`) };
  }
  if (given.kind === 'vacate') {
    const occupant = history.state.world.workers.get(given.workerRef)?.occupancy?.peerRef;
    return { ...given, peerRef: occupant ?? given.peerRef };
  }
  return given;
}

/** What must be true of every durable world, whatever led to it. */
function checkWorld(world: World): void {
  for (const worker of world.workers.values()) {
    expect(worker.standing === 'closed' && worker.occupancy !== undefined).toBe(false);
    const attachment = worker.occupancy?.attachment;
    expect(worker.workerGeneration >= 1n && (attachment?.attachmentEpoch ?? 1n) >= 1n).toBe(true);
  }
  const refs = [...world.workers.values()].flatMap(
    ({ occupancy }) => occupancy?.attachment?.attachmentRef ?? [],
  );
  expect(new Set(refs).size).toBe(refs.length);
}

/** What must be true of what lives beside it. */
function checkPresence({ world, presence }: State): void {
  const control = [...presence.peers.values()].filter(({ role }) => role === 'human-control');
  expect(control.length).toBeLessThanOrEqual(1);
  for (const [attachmentRef, look] of presence.presentations) {
    const worker = world.workers.get(look.workerRef);
    expect(worker?.standing).toBe('open');
    expect(worker?.occupancy?.attachment?.attachmentRef).toBe(attachmentRef);
    expect(worker?.openedBy).toBe(control[0]?.name);
    expect(look.peerRef).toBe(control[0]?.peerRef);
    expect(presence.nodes.has(look.node)).toBe(true);
  }
}

/** The rule of resolving, said a second time and otherwise: what a grant implies. */
function checkGrants(state: State): void {
  for (const each of names) {
    for (const who of [...operators, ...agents]) {
      for (const nowMs of [0, endMs]) {
        checkGrant(state, each, who, nowMs);
      }
    }
  }
}

function checkGrant(state: State, each: string, who: Asker, nowMs: number): void {
  for (const expected of [1n, 2n]) {
    const named = {
      workerRef: ref<never>(`wk_${each}`),
      expectedGeneration: generation(expected),
      node,
      asker: who,
    };
    const operation = who.role === 'agent' ? 'AGENT_INPUT' : 'PRESENT';
    const outcome = resolve(state, { operation, ...named }, nowMs);
    if (outcome.kind === 'refused') {
      continue;
    }
    const worker = state.world.workers.get(named.workerRef);
    const peer = state.presence.peers.get(who.lineage);
    expect(worker?.standing).toBe('open');
    expect(worker?.workerGeneration).toBe(expected);
    expect(peer !== undefined && peer.notAfterMs > nowMs).toBe(true);
    expect(worker?.occupancy?.attachment?.phase).toBe('active');
    expect(who.role === 'agent' ? worker?.occupancy?.peerRef : worker?.openedBy).toBe(
      who.role === 'agent' ? peer?.peerRef : who.name,
    );
  }
}

/** Where a story may begin: everything further takes too long to come about by chance. */
const closing = (): History => presented().after(commands.close());
const closed = (): History => closing().after(commands.finish);
const beginning = fc.constantFrom(opened, occupied, reserved, active, presented, closing, closed);

/** A story, told from its beginning; `onTurn` hears of each happening. */
function tell(
  { begin, happenings }: Story,
  onTurn: (history: History, before: State) => void = () => undefined,
): History {
  const history = begin();
  for (const [turn, each] of happenings.entries()) {
    const before = history.state;
    happen(history, each, turn);
    onTurn(history, before);
  }
  return history;
}

interface Story {
  readonly begin: () => History;
  readonly happenings: readonly Happening[];
}

function stories(lengths: { readonly minLength: number }): fc.Arbitrary<Story> {
  const happenings = fc.array(happening, { ...lengths, maxLength: 40 });
  return fc.record({ begin: beginning, happenings });
}

const story = stories({ minLength: 0 });

describe('after anything that can happen', () => {
  const settings = { numRuns: 300 };

  test('the world is legal, one operator lives, looks hang on what is there, grants mean what they say', () => {
    fc.assert(
      fc.property(story, (told) => {
        tell(told, ({ state }) => {
          checkWorld(state.world);
          checkPresence(state);
          checkGrants(state);
        });
      }),
      settings,
    );
  });

  test('a worker’s generation only grows, and who opened it stays', () => {
    fc.assert(
      fc.property(story, (told) => {
        tell(told, ({ state }, before) => {
          for (const [workerRef, worker] of before.world.workers) {
            const after = state.world.workers.get(workerRef);
            expect((after?.workerGeneration ?? 0n) >= worker.workerGeneration).toBe(true);
            expect(after?.openedBy).toBe(worker.openedBy);
          }
        });
      }),
      settings,
    );
  });

  test('every prefix of the journal folds to a legal world, and the whole of it to the same one', () => {
    fc.assert(
      fc.property(story, (told) => {
        const { events, state } = tell(told);
        let world = emptyWorld;
        for (const event of events) {
          world = evolve(world, [event]);
          checkWorld(world);
        }
        expect(world).toEqual(state.world);
        expect(evolve(emptyWorld, events)).toEqual(state.world);
      }),
      settings,
    );
  });

  test('these stories do reach what they are about', () => {
    const seen = new Set<string>();
    for (const told of fc.sample(stories({ minLength: 40 }), { numRuns: 500, seed: 7 })) {
      const begun = told.begin().events.length;
      const { events } = tell(told, ({ state }, before) => {
        if (state.presence.presentations.size > before.presence.presentations.size) {
          seen.add('presented');
        }
      });
      for (const { kind } of events.slice(begun)) {
        seen.add(kind);
      }
    }
    for (const kind of [
      'presented',
      'worker-closed',
      'worker-reopened',
      'occupied',
      'reoccupied',
      'vacated',
      'attachment-active',
      'attachment-released',
    ]) {
      expect(seen).toContain(kind);
    }
  });
});

describe('folding', () => {
  test('leaves the world it was given as it was', () => {
    const { world } = presented().state;
    const before = structuredClone(world);
    evolve(world, [{ kind: 'worker-closed', workerRef: ref('wk_demo') }]);
    expect(world).toEqual(before);
  });

  test('an event of a worker that was never opened is a bug', () => {
    expect(() => evolve(emptyWorld, [{ kind: 'worker-closed', workerRef: ref('wk_0') }])).toThrow(
      'unopened',
    );
  });

  test('a new life of the world counts itself', () => {
    const history = new History();
    for (const life of ['wd_first', 'wd_second']) {
      history.after({ kind: 'start-world', worldIncarnation: ref(life) });
    }
    expect(history.state.world).toMatchObject({
      worldIncarnation: 'wd_second',
      worldGeneration: 2n,
    });
  });
});
