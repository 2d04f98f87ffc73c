/** Builds legal states for tests: by deciding commands as the service does, and in no other way. */
import { granted, type Outcome } from '#kernel/outcome.js';
import { epoch, generation, type Lineage, ref, type WorkerRef } from '#kernel/refs.js';
import type {
  Bind,
  Carried,
  CloseWorker,
  Command,
  Occupy,
  OpenWorker,
  Reconcile,
  Release,
  ReopenWorker,
  Reserve,
  Vacate,
} from './command.js';
import { decide } from './decide.js';
import type { Effect } from './effect.js';
import { type Asker, bindGone, type Transition } from './presence.js';
import { type PresentQuestion, present } from './present.js';
import { emptyState, type State, type Surroundings } from './state.js';
import { evolve, type WorldEvent } from './world.js';

/** When the certificates of tests end. */
export const endMs = 3_600_000;

/** A caller of tests; a run of an actor has a lineage of its own. */
export function asker(role: Asker['role'], name: string, lineage = `${name}-certificate`): Asker {
  return { role, name, lineage: ref<Lineage>(lineage), notAfterMs: endMs };
}

export const ada = asker('human-control', 'ada');
export const bob = asker('human-control', 'bob');
/** Two runs of one actor, and another actor's. */
export const demo = asker('agent', 'demo', 'first-run');
export const demoAgain = asker('agent', 'demo', 'second-run');
export const stranger = asker('agent', 'stranger');

export const node = 'local';
export const demoRef = ref<WorkerRef>('wk_demo');

/** The worker `demo` as it was first opened. */
export const designation = { workerRef: demoRef, expectedGeneration: generation(1n) } as const;

export const roomy: Surroundings = {
  nowMs: 0,
  journalFreeBytes: 1_000_000,
  limits: { workersMax: 3, peersMax: 4, bindsPerPeerMax: 3, journalLowWaterBytes: 1_000 },
};

export const low: Surroundings = { ...roomy, journalFreeBytes: 999 };

/** Commands as they come when nothing special is said. */
export const commands = {
  bind: (given: Partial<Bind> = {}): Bind => ({
    kind: 'bind',
    asker: ada,
    peerRef: ref(`pr_${(given.asker ?? ada).lineage}`),
    ...given,
  }),
  open: (given: Partial<OpenWorker> = {}): OpenWorker => ({
    kind: 'open-worker',
    asker: ada,
    workerRef: demoRef,
    locusRef: ref('lc_demo'),
    name: 'demo',
    actor: 'demo',
    workspace: '/work',
    node,
    driveAllowed: false,
    delegationAllowed: false,
    ...given,
  }),
  close: (given: Partial<CloseWorker> = {}): CloseWorker => ({
    kind: 'close-worker',
    asker: ada,
    ...designation,
    ...given,
  }),
  finish: { kind: 'finish-closing', workerRef: demoRef },
  reopen: (given: Partial<ReopenWorker> = {}): ReopenWorker => ({
    kind: 'reopen-worker',
    asker: ada,
    ...designation,
    ...given,
  }),
  occupy: (given: Partial<Occupy> = {}): Occupy => ({
    kind: 'occupy',
    asker: demo,
    ...designation,
    carrierRef: ref('cr_demo'),
    ...given,
  }),
  vacate: (given: Partial<Vacate> = {}): Vacate => ({
    kind: 'vacate',
    workerRef: demoRef,
    peerRef: ref(`pr_${demo.lineage}`),
    ...given,
  }),
  reserve: (given: Partial<Reserve> = {}): Reserve => ({
    kind: 'reserve',
    asker: demo,
    node,
    ...designation,
    attachmentRef: ref('at_demo'),
    ...given,
  }),
  activate: { kind: 'activate', node, attachmentRef: ref('at_demo') },
  release: (given: Partial<Release> = {}): Release => ({
    kind: 'release',
    node,
    attachmentRef: ref('at_demo'),
    ...given,
  }),
  reconcile: (given: Partial<Reconcile> = {}): Reconcile => ({
    kind: 'reconcile',
    node,
    dataIncarnation: ref('dn_first'),
    endpoint: '127.0.0.1:4000',
    carried: [],
    ...given,
  }),
} as const satisfies Readonly<Record<string, Command | ((given?: never) => Command)>>;

/** The terminal of `demo` as its node's inventory lists it. */
export function carried(given: Partial<Carried> = {}): Carried {
  return {
    workerRef: demoRef,
    workerGeneration: generation(1n),
    attachmentRef: ref('at_demo'),
    attachmentEpoch: epoch(1n),
    carrierEpoch: epoch(1n),
    ...given,
  };
}

/** What one command came to. */
export interface Came {
  readonly events: readonly WorldEvent[];
  readonly effects: readonly Effect[];
}

/** A state with the way to it. Mutable: a test goes on from where it stands. */
export class History {
  state: State = emptyState;
  readonly events: WorldEvent[] = [];

  /** Decides a command; a refusal leaves everything as it was. */
  decide(command: Command, surroundings = roomy): Outcome<Came> {
    const outcome = decide(command, this.state, surroundings);
    if (outcome.kind === 'refused') {
      return outcome;
    }
    const { events, presence, effects } = outcome.value;
    this.state = { world: evolve(this.state.world, events), presence };
    this.events.push(...events);
    return granted({ events, effects });
  }

  /** Decides commands of which none may be refused. */
  after(...given: readonly Command[]): this {
    for (const command of given) {
      const outcome = this.decide(command);
      if (outcome.kind === 'refused') {
        throw new Error(`${command.kind} is refused: ${outcome.refusal.reason}`);
      }
    }
    return this;
  }

  /** Lets something ephemeral happen. */
  passes(transition: (state: State) => Transition): readonly Effect[] {
    const { state: presence, effects } = transition(this.state);
    this.state = { ...this.state, presence };
    return effects;
  }

  /** The last Bind stream of a caller is over. */
  unbind(gone: Asker): readonly Effect[] {
    return this.passes(({ presence, world }) => {
      const peerRef = presence.peers.get(gone.lineage)?.peerRef;
      return peerRef === undefined
        ? { state: presence, effects: [] }
        : bindGone(presence, world, peerRef);
    });
  }

  present(given: Partial<PresentQuestion> = {}, nowMs = 0): ReturnType<typeof present> {
    const question = presentQuestion(given);
    const outcome = present(this.state, question, nowMs);
    if (outcome.kind === 'granted') {
      this.state = { ...this.state, presence: outcome.value.presence };
    }
    return outcome;
  }

  /** What a new process reads: the world as it is, and nobody there. */
  restart(): this {
    this.state = { ...emptyState, world: evolve(emptyState.world, this.events) };
    return this;
  }
}

export function presentQuestion(given: Partial<PresentQuestion> = {}): PresentQuestion {
  return {
    operation: 'PRESENT',
    node,
    asker: ada,
    ...designation,
    presentation: 1n,
    replace: false,
    ...given,
  };
}

/** Ada and the node are there, `demo` is open. */
export function opened(): History {
  return new History().after(commands.bind(), commands.reconcile(), commands.open());
}

/** An agent sits at it. */
export function occupied(): History {
  return opened().after(commands.bind({ asker: demo }), commands.occupy());
}

/** Its terminal is admitted. */
export function reserved(): History {
  return occupied().after(commands.reserve());
}

/** Its terminal runs. */
export function active(): History {
  return reserved().after(commands.activate);
}

/** Ada looks at it. */
export function presented(): History {
  const history = active();
  history.present();
  return history;
}

/** The name of a refusal, or that there was none. */
export function reasonOf(outcome: Outcome<unknown>): string {
  return outcome.kind === 'refused' ? outcome.refusal.reason : 'granted';
}
