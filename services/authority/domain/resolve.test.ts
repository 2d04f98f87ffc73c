import { describe, expect, test } from 'vitest';
import { generation, ref } from '#kernel/refs.js';
import type { ReasonName } from '#kernel/refusal.js';
import {
  active,
  ada,
  asker,
  bob,
  commands,
  demo,
  demoAgain,
  demoRef,
  designation,
  endMs,
  type History,
  node,
  occupied,
  opened,
  presented,
  presentQuestion,
  reasonOf,
  reserved,
  stranger,
} from './history.js';
import { nodeGone, type Presentation } from './presence.js';
import { present } from './present.js';
import { type Question, resolve, resolveSeat } from './resolve.js';

type Ruling = ReasonName | 'granted';

/** Everything that may be asked about a worker, and by whom. */
const asking = {
  'operator presents': (given: Given) => present(given.state, presentQuestion(given), given.nowMs),
  'operator observes': (given: Given) =>
    ask({ operation: 'OBSERVE', asker: ada, presentation: 1n }, given),
  'agent types': (given: Given) => ask({ operation: 'AGENT_INPUT', asker: demo }, given),
  'agent resizes': (given: Given) => ask({ operation: 'AGENT_RESIZE', asker: demo }, given),
  'agent reserves': (given: Given) =>
    resolveSeat(given.state, { ...given, asker: demo }, given.nowMs),
} as const;

type Operation = keyof typeof asking;

/** What is asked about, as the state stands. */
type Given = Pick<Question, 'workerRef' | 'expectedGeneration' | 'node'> & {
  readonly state: History['state'];
  readonly nowMs: number;
};

type Said = { readonly asker: Question['asker'] } & (
  | { readonly operation: 'OBSERVE'; readonly presentation: bigint }
  | { readonly operation: 'PRESENT' | 'AGENT_INPUT' | 'AGENT_RESIZE' }
);

function ask(said: Said, given: Given) {
  const { workerRef, expectedGeneration, node } = given;
  return resolve(given.state, { ...said, workerRef, expectedGeneration, node }, given.nowMs);
}

function given(history: History, overrides: Partial<Given> = {}): Given {
  return { ...designation, node, nowMs: 0, state: history.state, ...overrides };
}

function closing(): History {
  return presented().after(commands.close());
}

function closed(): History {
  return closing().after(commands.finish);
}

function reopened(): History {
  return closed().after(commands.reopen());
}

function awaited(): History {
  const history = presented();
  history.unbind(demo);
  return history;
}

/** Every way in which the chain can stand, with the node of worker `demo` asking unless said otherwise. */
const situations = {
  'a worker nobody opened': () => given(presented(), { workerRef: ref('wk_0') }),
  'a worker that another operator opened': () => {
    const history = active();
    history.unbind(ada);
    history.after(commands.bind({ asker: bob }));
    return given(history);
  },
  'an open worker with no occupant': () => given(opened()),
  'an occupant without a terminal': () => given(occupied()),
  'a terminal that is only reserved': () => given(reserved()),
  'a terminal that runs': () => given(active()),
  'a terminal that is looked at': () => given(presented()),
  'an occupant that is awaited': () => given(awaited()),
  'an occupant whose seat was vacated': () => given(awaited().after(commands.vacate())),
  'another run of the actor in the seat': () => {
    const history = awaited().after(commands.vacate(), commands.bind({ asker: demoAgain }));
    return given(
      history.after(commands.bind({ asker: demo }), commands.occupy({ asker: demoAgain })),
    );
  },
  'a worker that is being closed': () => given(closing()),
  'a closed worker': () => given(closed()),
  'a worker reopened since': () => given(reopened()),
  'a worker reopened, asked by its new generation': () =>
    given(reopened(), { expectedGeneration: generation(2n) }),
  'a generation that never was': () => given(presented(), { expectedGeneration: generation(9n) }),
  'a worker of another node': () => given(presented(), { node: 'elsewhere' }),
  'a terminal after a restart of authority': () =>
    given(presented().restart().after(commands.bind(), commands.reconcile())),
  'a terminal of an earlier life of the node': () => {
    const { world, presence } = presented().state;
    const nodes = new Map([[node, { dataIncarnation: ref<never>('dn_second'), endpoint: '' }]]);
    return { ...given(presented()), state: { world, presence: { ...presence, nodes } } };
  },
  'a terminal whose node is away': () => {
    const history = presented();
    history.passes(({ presence }) => ({ state: nodeGone(presence, node), effects: [] }));
    return given(history);
  },
  'an operator that is not bound': () => {
    const history = presented();
    history.unbind(ada);
    return given(history);
  },
  'certificates that have all ended': () => given(presented(), { nowMs: endMs }),
} as const satisfies Readonly<Record<string, () => Given>>;

type Situation = keyof typeof situations;

/** The order of the links is the law P2: each row names the first that is broken. */
const rulings: Readonly<Record<Situation, Readonly<Record<Operation, Ruling>>>> = {
  'a worker nobody opened': {
    'operator presents': 'WORKER_UNKNOWN',
    'operator observes': 'WORKER_UNKNOWN',
    'agent types': 'WORKER_NOT_YOURS',
    'agent resizes': 'WORKER_NOT_YOURS',
    'agent reserves': 'WORKER_NOT_YOURS',
  },
  'a worker that another operator opened': {
    'operator presents': 'CONTROL_CHANNEL_NOT_BOUND',
    'operator observes': 'CONTROL_CHANNEL_NOT_BOUND',
    'agent types': 'granted',
    'agent resizes': 'granted',
    'agent reserves': 'granted',
  },
  'an open worker with no occupant': {
    'operator presents': 'LOCUS_NOT_OCCUPIED',
    'operator observes': 'LOCUS_NOT_OCCUPIED',
    'agent types': 'AGENT_CHANNEL_NOT_BOUND',
    'agent resizes': 'AGENT_CHANNEL_NOT_BOUND',
    'agent reserves': 'AGENT_CHANNEL_NOT_BOUND',
  },
  'an occupant without a terminal': {
    'operator presents': 'CARRIER_NOT_ATTACHED',
    'operator observes': 'CARRIER_NOT_ATTACHED',
    'agent types': 'CARRIER_NOT_ATTACHED',
    'agent resizes': 'CARRIER_NOT_ATTACHED',
    'agent reserves': 'granted',
  },
  'a terminal that is only reserved': {
    'operator presents': 'CARRIER_NOT_ATTACHED',
    'operator observes': 'CARRIER_NOT_ATTACHED',
    'agent types': 'CARRIER_NOT_ATTACHED',
    'agent resizes': 'CARRIER_NOT_ATTACHED',
    'agent reserves': 'granted',
  },
  'a terminal that runs': {
    'operator presents': 'granted',
    'operator observes': 'PRESENTATION_ENDED',
    'agent types': 'granted',
    'agent resizes': 'granted',
    'agent reserves': 'granted',
  },
  'a terminal that is looked at': {
    'operator presents': 'PRESENTATION_EXISTS',
    'operator observes': 'granted',
    'agent types': 'granted',
    'agent resizes': 'granted',
    'agent reserves': 'granted',
  },
  'an occupant that is awaited': {
    'operator presents': 'LOCUS_NOT_OCCUPIED',
    'operator observes': 'LOCUS_NOT_OCCUPIED',
    'agent types': 'AGENT_CHANNEL_NOT_BOUND',
    'agent resizes': 'AGENT_CHANNEL_NOT_BOUND',
    'agent reserves': 'AGENT_CHANNEL_NOT_BOUND',
  },
  'an occupant whose seat was vacated': {
    'operator presents': 'LOCUS_NOT_OCCUPIED',
    'operator observes': 'LOCUS_NOT_OCCUPIED',
    'agent types': 'AGENT_CHANNEL_NOT_BOUND',
    'agent resizes': 'AGENT_CHANNEL_NOT_BOUND',
    'agent reserves': 'AGENT_CHANNEL_NOT_BOUND',
  },
  'another run of the actor in the seat': {
    'operator presents': 'CARRIER_NOT_ATTACHED',
    'operator observes': 'CARRIER_NOT_ATTACHED',
    'agent types': 'WORKER_NOT_YOURS',
    'agent resizes': 'WORKER_NOT_YOURS',
    'agent reserves': 'WORKER_NOT_YOURS',
  },
  'a worker that is being closed': {
    'operator presents': 'WORKER_CLOSED',
    'operator observes': 'WORKER_CLOSED',
    'agent types': 'WORKER_CLOSED',
    'agent resizes': 'WORKER_CLOSED',
    'agent reserves': 'WORKER_CLOSED',
  },
  'a closed worker': {
    'operator presents': 'WORKER_CLOSED',
    'operator observes': 'WORKER_CLOSED',
    'agent types': 'WORKER_CLOSED',
    'agent resizes': 'WORKER_CLOSED',
    'agent reserves': 'WORKER_CLOSED',
  },
  'a worker reopened since': {
    'operator presents': 'WORKER_GENERATION_ADVANCED',
    'operator observes': 'WORKER_GENERATION_ADVANCED',
    'agent types': 'WORKER_GENERATION_ADVANCED',
    'agent resizes': 'WORKER_GENERATION_ADVANCED',
    'agent reserves': 'WORKER_GENERATION_ADVANCED',
  },
  'a worker reopened, asked by its new generation': {
    'operator presents': 'LOCUS_NOT_OCCUPIED',
    'operator observes': 'LOCUS_NOT_OCCUPIED',
    'agent types': 'WORKER_NOT_YOURS',
    'agent resizes': 'WORKER_NOT_YOURS',
    'agent reserves': 'WORKER_NOT_YOURS',
  },
  'a generation that never was': {
    'operator presents': 'WORKER_GENERATION_ADVANCED',
    'operator observes': 'WORKER_GENERATION_ADVANCED',
    'agent types': 'WORKER_GENERATION_ADVANCED',
    'agent resizes': 'WORKER_GENERATION_ADVANCED',
    'agent reserves': 'WORKER_GENERATION_ADVANCED',
  },
  'a worker of another node': {
    'operator presents': 'NOT_CARRIED_HERE',
    'operator observes': 'NOT_CARRIED_HERE',
    'agent types': 'NOT_CARRIED_HERE',
    'agent resizes': 'NOT_CARRIED_HERE',
    'agent reserves': 'NOT_CARRIED_HERE',
  },
  'a terminal after a restart of authority': {
    'operator presents': 'LOCUS_NOT_OCCUPIED',
    'operator observes': 'LOCUS_NOT_OCCUPIED',
    'agent types': 'AGENT_CHANNEL_NOT_BOUND',
    'agent resizes': 'AGENT_CHANNEL_NOT_BOUND',
    'agent reserves': 'AGENT_CHANNEL_NOT_BOUND',
  },
  'a terminal of an earlier life of the node': {
    'operator presents': 'CARRIER_ATTACHED_ELSEWHERE',
    'operator observes': 'CARRIER_ATTACHED_ELSEWHERE',
    'agent types': 'CARRIER_ATTACHED_ELSEWHERE',
    'agent resizes': 'CARRIER_ATTACHED_ELSEWHERE',
    'agent reserves': 'granted',
  },
  'a terminal whose node is away': {
    'operator presents': 'OWNER_UNREACHABLE',
    'operator observes': 'OWNER_UNREACHABLE',
    'agent types': 'OWNER_UNREACHABLE',
    'agent resizes': 'OWNER_UNREACHABLE',
    'agent reserves': 'granted',
  },
  'an operator that is not bound': {
    'operator presents': 'CONTROL_CHANNEL_NOT_BOUND',
    'operator observes': 'CONTROL_CHANNEL_NOT_BOUND',
    'agent types': 'granted',
    'agent resizes': 'granted',
    'agent reserves': 'granted',
  },
  'certificates that have all ended': {
    'operator presents': 'CERTIFICATE_EXPIRED',
    'operator observes': 'CERTIFICATE_EXPIRED',
    'agent types': 'CERTIFICATE_EXPIRED',
    'agent resizes': 'CERTIFICATE_EXPIRED',
    'agent reserves': 'CERTIFICATE_EXPIRED',
  },
};

const rows = Object.entries(rulings).flatMap(([situation, byOperation]) =>
  Object.entries(byOperation).map(
    ([operation, ruling]) =>
      [operation as Operation, situation as Situation, ruling as Ruling] as const,
  ),
);

describe('P2: the first broken link names the refusal', () => {
  test.each(rows)('%s: %s → %s', (operation, situation, ruling) => {
    expect(reasonOf(asking[operation](situations[situation]()))).toBe(ruling);
  });

  test('another operator that is bound is told that it did not open the worker', () => {
    const history = active();
    history.unbind(ada);
    history.after(commands.bind({ asker: bob }));
    expect(reasonOf(history.present({ asker: bob }))).toBe('WORKER_NOT_OPENED_BY_CALLER');
  });
});

describe('P3: being privileged, or knowing names, entitles to nothing', () => {
  test.each([
    ['the agent in the seat', demo],
    ['another run of its actor', demoAgain],
    ['another actor’s agent', stranger],
    ['a creator', asker('creator', 'ada')],
    ['a service', asker('service', 'data')],
  ])('%s may neither present nor observe, whatever it names', (_who, caller) => {
    const history = presented().after(commands.bind({ asker: demoAgain }));
    for (const workerRef of [demoRef, ref<never>('wk_0'), ref<never>('at_demo')]) {
      const named = { ...designation, workerRef, node, asker: caller };
      expect(reasonOf(history.present({ ...named, presentation: 2n }))).toBe(
        'ROLE_NOT_HUMAN_CONTROL',
      );
      const observe = { operation: 'OBSERVE', presentation: 1n, ...named } as const;
      expect(reasonOf(resolve(history.state, observe, 0))).toBe('ROLE_NOT_HUMAN_CONTROL');
    }
  });

  test('an operator may not use what is the agent’s own', () => {
    const history = presented();
    for (const operation of ['AGENT_INPUT', 'AGENT_RESIZE'] as const) {
      const question = { operation, ...designation, node, asker: ada };
      expect(reasonOf(resolve(history.state, question, 0))).toBe('ROLE_NOT_AGENT');
    }
  });

  test('an agent may not use a worker of another actor, nor learn how it stands', () => {
    const question = { operation: 'AGENT_INPUT', ...designation, node, asker: stranger } as const;
    for (const history of [presented(), closing(), closed(), reopened()]) {
      history.after(commands.bind({ asker: stranger }));
      expect(reasonOf(resolve(history.state, question, 0))).toBe('WORKER_NOT_YOURS');
    }
  });
});

describe('a grant', () => {
  test('names the terminal as it stands and the caller’s own peer', () => {
    const outcome = ask({ operation: 'OBSERVE', asker: ada, presentation: 1n }, given(presented()));
    expect(outcome).toMatchObject({
      kind: 'granted',
      value: {
        peerRef: 'pr_ada-certificate',
        worker: { actor: 'demo', locusRef: 'lc_demo', workerGeneration: 1n },
        occupancy: { carrierRef: 'cr_demo', carrierEpoch: 1n, peerRef: 'pr_first-run' },
        attachment: { attachmentRef: 'at_demo', attachmentEpoch: 1n, ptyEpoch: 1n },
      },
    });
  });

  test('carries the grown epochs when the terminal has changed hands', () => {
    const history = awaited().after(commands.bind({ asker: demo, peerRef: ref('pr_back') }));
    expect(history.present()).toMatchObject({
      value: {
        grant: {
          occupancy: { carrierEpoch: 2n },
          attachment: { attachmentEpoch: 2n, ptyEpoch: 1n },
        },
      },
    });
  });
});

describe('P10: one observer for each terminal', () => {
  test('a second look is refused, and the first goes on', () => {
    const history = presented();
    expect(reasonOf(history.present({ presentation: 2n }))).toBe('PRESENTATION_EXISTS');
    expect(reasonOf(asking['operator observes'](given(history)))).toBe('granted');
  });

  test('the same peer may replace it: the older one is fenced, and only the newer observes', () => {
    const history = presented();
    const outcome = history.present({ presentation: 2n, replace: true });
    expect(outcome).toMatchObject({
      value: {
        effects: [
          {
            kind: 'fence',
            node,
            workerRef: demoRef,
            scope: 'PRESENTATIONS',
            reason: 'REPLACED',
          },
        ],
      },
    });
    expect(reasonOf(asking['operator observes'](given(history)))).toBe('PRESENTATION_ENDED');
    const newer = { operation: 'OBSERVE', asker: ada, presentation: 2n } as const;
    expect(reasonOf(ask(newer, given(history)))).toBe('granted');
  });

  test('asking to replace replaces nothing when there is nothing', () => {
    expect(active().present({ replace: true })).toMatchObject({ value: { effects: [] } });
  });

  /** A state that no history leads to, so that each check is seen to stand by itself. */
  function lookedAtBy(other: Partial<Presentation>): Given {
    const { world, presence } = presented().state;
    const presentations = new Map(
      [...presence.presentations].map(([ref, look]) => [ref, { ...look, ...other }]),
    );
    return { ...given(presented()), state: { world, presence: { ...presence, presentations } } };
  }

  test.each([
    ['another peer', { peerRef: ref<never>('pr_bob') }],
    ['another node', { node: 'elsewhere' }],
    ['another number', { number: 2n }],
  ] satisfies [string, Partial<Presentation>][])(
    'a look of %s is not the caller’s',
    (_whose, look) => {
      expect(reasonOf(asking['operator observes'](lookedAtBy(look)))).toBe('PRESENTATION_ENDED');
    },
  );

  test('a look of another peer is not replaced', () => {
    const { state } = lookedAtBy({ peerRef: ref('pr_bob') });
    const wish = presentQuestion({ presentation: 2n, replace: true });
    expect(reasonOf(present(state, wish, 0))).toBe('PRESENTATION_EXISTS');
  });

  test('a number that stands for another look is refused', () => {
    const history = presented().after(
      commands.open({ workerRef: ref('wk_other'), name: 'other' }),
      commands.occupy({ workerRef: ref('wk_other') }),
      commands.reserve({ workerRef: ref('wk_other'), attachmentRef: ref('at_other') }),
      { kind: 'activate', node, attachmentRef: ref('at_other') },
    );
    const outcome = history.present({ workerRef: ref('wk_other') });
    expect(reasonOf(outcome)).toBe('REQUEST_INVALID');
  });
});
