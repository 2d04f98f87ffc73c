/** Authority killed at any moment: what it had acknowledged stands, agents go on, looks close by name. */
import { describe, expect, test } from 'vitest';
import { RefusedError, UnreachableError } from '#client/call-errors.js';
import { connect } from '#client/connect.js';
import { Possession } from '#client/possession.js';
import type { Designation } from '#client/presentation.js';
import { designationOf, Workers } from '#client/workers.js';
import { type Worker, WorkerState } from '#gen/wheelhouse/authority/v1/authority.js';
import { eventually, within } from '../stack/eventually.js';
import { falsifier, type Subject } from '../stack/falsifier.js';
import { startStack } from '../stack/start-stack.js';
import { AgentRun, boundAgent, type Look, Operator, raw } from './actors.js';
import {
  exactToItsEnd,
  expectNoBugs,
  type Fact,
  journalOf,
  nothingLeft,
  reasonOf,
} from './aftermath.js';
import { Chance } from './chance.js';
import { counting } from './counting.js';
import { product, Room } from './room.js';

/** Presentations close; the agent's terminal, its positions and what it types go on across every restart. */
async function killedUnderFlood(
  subject: Subject,
  { rounds, holdLimitMs }: { readonly rounds: number; readonly holdLimitMs?: number },
): Promise<void> {
  const chance = Chance.drawnFor('authority killed under flood');
  await using room = await Room.open(subject);
  const { stack, worker } = room;
  await using run = await room.runs(raw(counting));
  await using typist = await Typist.at(room);
  for (let round = 0; round < rounds; round += 1) {
    await using operator = await Operator.at(stack);
    const look = await looksAgain(operator, worker, holdLimitMs);
    await chance.moment(20, 400);
    await stack.crash('authority');
    await stack.restart('authority');
    await stack.joined();
    expect(reasonOf(await exactToItsEnd(look))).toBe('WORLD_RESTARTED');
  }
  await using operator = await Operator.at(stack);
  await looksAgain(operator, worker);
  await typist.stops();
  await typist[Symbol.asyncDispose]();
  await operator.workers.close(worker);
  expect(reasonOf(await exactToItsEnd(run))).toBe('WORKER_CLOSED');
  await nothingLeft(stack);
  await stack.crash('authority');
  expectNewHands(journalOf(stack), worker, rounds);
  expectNoBugs(stack);
}

/** Nobody sits there until the agent is back. */
async function looksAgain(
  operator: Operator,
  worker: Designation,
  holdLimitMs?: number,
): Promise<Look> {
  return await eventually('the agent is back, and looked at', () =>
    operator.looksAt(worker, { holdLimitMs }),
  );
}

/** A second agent, who types numbers at a program that echoes them: each once, in order. */
class Typist implements AsyncDisposable {
  readonly #run: AgentRun;
  readonly #done: Promise<void>;
  #isTyping = true;
  #typed = '\n';

  private constructor(run: AgentRun) {
    this.#run = run;
    void run.ended.then(() => {
      this.#isTyping = false;
    });
    this.#done = this.#type();
  }

  static async at({ stack, operator }: Room): Promise<Typist> {
    const worker = await operator.opens('typist');
    const agent = await operator.identityOf('typist');
    const run = await AgentRun.starts(stack, agent, worker, raw('echo; exec cat'));
    await run.shows(/^\n/);
    return new Typist(run);
  }

  async stops(): Promise<void> {
    this.#isTyping = false;
    await within('the last number is typed', 20_000, this.#done);
    const bytes = BigInt(this.#typed.length);
    await eventually('it is all echoed', () => this.#run.received.bytes >= bytes);
    expect(this.#run.received.text).toBe(this.#typed);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isTyping = false;
    await this.#run[Symbol.asyncDispose]();
  }

  async #type(): Promise<void> {
    for (let number = 0; this.#isTyping; number += 1) {
      this.#typed += `${number}\n`;
      await this.#run.possession.write(Buffer.from(`${number}\n`));
    }
  }
}

/** Each return is another peer, and both epochs are one higher (DESIGN 6, Restarts). */
function expectNewHands(facts: readonly Fact[], worker: Designation, rounds: number): void {
  const returns = facts
    .filter(({ kind, body }) => kind === 'reoccupied' && body['workerRef'] === worker.workerRef)
    .map(({ body }) => body);
  const epochs = Array.from({ length: rounds }, (_, round) => String(round + 2));
  expect(returns.map(({ carrierEpoch }) => carrierEpoch)).toEqual(epochs);
  expect(returns.map(({ attachmentEpoch }) => attachmentEpoch)).toEqual(epochs);
  expect(new Set(returns.map(({ peerRef }) => peerRef)).size).toBe(rounds);
}

/** An agent that is back within the grace goes on; one that is not is hung up by name. */
async function notBackInTime(subject: Subject, graceMs: number): Promise<void> {
  await using room = await Room.open(subject, {
    authority: { WHEELHOUSE_REBIND_GRACE_MS: String(graceMs) },
  });
  const { stack, worker } = room;
  const other = await room.operator.opens('other');
  const otherAgent = await room.operator.identityOf('other');
  const back = await AgentRun.starts(stack, otherAgent, other, raw('echo ready; exec cat'));
  await back.shows(/ready/);
  const away = await room.runs(raw(`(trap '' HUP; exec sleep 600) & ${counting}`));
  await stack.crash('authority');
  away.bind.close();
  await stack.restart('authority');
  await stack.joined();
  await using operator = await Operator.at(stack);
  await expect(operator.looksAt(worker)).rejects.toMatchObject({
    refusal: { reason: 'LOCUS_NOT_OCCUPIED' },
  });
  expect(reasonOf(await exactToItsEnd(away, 3 * graceMs))).toBe('AGENT_UNBOUND');
  await using next = await room.runs(raw('echo next; exec cat'));
  await next.shows(/next/);
  await back.possession.write(Buffer.from('still here\n'));
  await back.shows(/still here/);
  await back[Symbol.asyncDispose]();
  await next[Symbol.asyncDispose]();
  await nothingLeft(stack);
  expectNoBugs(stack);
}

/** A closing that a stopped node keeps open is taken up by the next life of authority. */
async function closingFinishes(subject: Subject, patienceMs?: number): Promise<void> {
  await using room = await Room.open(subject);
  const { stack, worker } = room;
  const run = await room.runs(raw(`(trap '' HUP; exec sleep 600) & ${counting}`));
  const look = await room.operator.looksAt(worker);
  await stack.pause('data');
  const closing = room.operator.workers.close(worker).catch((error: unknown) => error);
  await stands(room.operator, worker, 'CLOSING');
  await stack.crash('authority');
  await stack.restart('authority');
  expect(await within('the call ends', 15_000, closing)).toBeInstanceOf(UnreachableError);
  await using operator = await Operator.at(stack);
  await stands(operator, worker, 'CLOSING');
  await expect(operator.workers.reopen(worker)).rejects.toMatchObject({
    refusal: { reason: 'WORKER_CLOSING' },
  });
  await stack.resume('data');
  await stands(operator, worker, 'CLOSED', patienceMs);
  await exactToItsEnd(look);
  expect(reasonOf(await exactToItsEnd(run))).toBe('WORKER_CLOSED');
  await nothingLeft(stack);
  const reopened = await operator.workers.reopen(worker);
  expect(reopened.workerGeneration).toBe(worker.generation + 1n);
  expectNoBugs(stack);
}

async function stands(
  operator: Operator,
  { workerRef }: Designation,
  state: keyof typeof WorkerState,
  patienceMs?: number,
): Promise<void> {
  const stands = async (): Promise<boolean> => {
    const all = await operator.workers.list();
    return all.find((each) => each.workerRef === workerRef)?.state === WorkerState[state];
  };
  await eventually(`it is ${state}`, stands, patienceMs);
}

/** Killed at any moment of a closing: it has not begun, or it is finished, and fenced means fenced. */
async function killedWhileClosing(subject: Subject, rounds: number): Promise<void> {
  const chance = Chance.drawnFor('authority killed while closing');
  await using room = await Room.open(subject);
  const { stack } = room;
  let { worker } = room;
  for (let round = 0; round < rounds; round += 1) {
    await using before = await Operator.at(stack);
    const run = await AgentRun.starts(stack, room.agent, worker, raw(counting));
    const look = await before.looksAt(worker);
    await chance.moment(0, 100);
    const closing = before.workers.close(worker).catch((error: unknown) => error);
    await chance.moment(0, 12);
    await stack.crash('authority');
    await stack.restart('authority');
    await stack.joined();
    const outcome = await within('the call ends', 15_000, closing);
    await using operator = await Operator.at(stack);
    const [{ state } = { state: undefined }] = await operator.workers.list();
    if (!(outcome instanceof UnreachableError)) {
      expect(outcome).toEqual({ isFenced: true });
      expect(state).toBe(WorkerState.CLOSED);
    }
    if (state !== WorkerState.CLOSING && state !== WorkerState.CLOSED) {
      expect(await operator.workers.close(worker)).toEqual({ isFenced: true });
    }
    await stands(operator, worker, 'CLOSED');
    expect(['WORKER_CLOSED', 'WORLD_RESTARTED', 'lost']).toContain(
      reasonOf(await exactToItsEnd(look)),
    );
    expect(reasonOf(await exactToItsEnd(run))).toBe('WORKER_CLOSED');
    await run[Symbol.asyncDispose]();
    worker = designationOf(await operator.workers.reopen(worker));
  }
  await nothingLeft(stack);
  expectNoBugs(stack);
}

type Standing = { readonly state: WorkerState; readonly generation: bigint };

/** One worker that is opened, closed and reopened, over and over, and what of it was acknowledged. */
class Cycle {
  readonly #name: string;
  #acknowledged: Standing | undefined;
  /** Where the command that is on its way leads to. */
  #asked: Standing | undefined;
  #worker: Designation = { workerRef: '', generation: 1n };

  constructor(name: string) {
    this.#name = name;
  }

  /** Until nobody answers any more. */
  async goesOn(operator: Operator, workspace: string): Promise<void> {
    try {
      for (;;) {
        await this.#step(operator, workspace);
      }
    } catch (error) {
      if (!(error instanceof UnreachableError)) {
        throw error;
      }
    }
  }

  /** What was acknowledged stands, what was not may or may not; from there it goes on. */
  found(all: readonly Worker[]): void {
    const worker = all.find(({ name }) => name === this.#name);
    const found = worker && { state: worker.state, generation: worker.workerGeneration };
    expect([this.#acknowledged, this.#asked ?? this.#acknowledged]).toContainEqual(found);
    this.#acknowledged = found;
    this.#asked = undefined;
    this.#worker = worker === undefined ? this.#worker : designationOf(worker);
  }

  async #step(operator: Operator, workspace: string): Promise<void> {
    const { workers } = operator;
    const standing = this.#acknowledged;
    const { generation } = this.#worker;
    if (standing === undefined) {
      this.#asked = { state: WorkerState.VACANT, generation };
      this.#worker = designationOf(await workers.open({ name: this.#name, workspace }));
    } else if (standing.state === WorkerState.VACANT) {
      this.#asked = { state: WorkerState.CLOSED, generation };
      expect(await workers.close(this.#worker)).toEqual({ isFenced: true });
    } else {
      this.#asked = { state: WorkerState.VACANT, generation: generation + 1n };
      this.#worker = designationOf(await workers.reopen(this.#worker));
    }
    this.#acknowledged = this.#asked;
    this.#asked = undefined;
  }
}

async function killedAmongCommands({ distDir }: Subject, rounds: number): Promise<void> {
  const chance = Chance.drawnFor('authority killed among commands');
  await using stack = await startStack({ distDir });
  const cycles = ['one', 'two', 'three'].map((name) => new Cycle(name));
  for (let round = 0; round < rounds; round += 1) {
    await using operator = await Operator.at(stack);
    const going = cycles.map((cycle) => cycle.goesOn(operator, stack.workspace));
    await chance.moment(0, 80);
    await stack.crash('authority');
    await within('every call ends', 15_000, Promise.all(going));
    expectLegal(journalOf(stack), round + 1);
    await stack.restart('authority');
    await stack.joined();
    await using next = await Operator.at(stack);
    const all = await eventually('no closing is left half done', async () => {
      const found = await next.workers.list();
      return found.every(({ state }) => state !== WorkerState.CLOSING) && found;
    });
    cycles.forEach((cycle) => {
      cycle.found(all);
    });
  }
  expectNoBugs(stack);
}

const after: Readonly<Record<string, string>> = {
  'worker-opened': 'worker-reopened',
  'worker-closing': 'worker-opened worker-reopened',
  'worker-closed': 'worker-closing',
  'worker-reopened': 'worker-closed',
};

/** Indices without a gap, one start a life, and every worker's facts in the order of its states. */
function expectLegal(facts: readonly Fact[], lives: number): void {
  expect(facts.map(({ index }) => index)).toEqual(facts.map((_, place) => place + 1));
  const starts = facts.filter(({ kind }) => kind === 'world-started');
  expect(starts.map(({ body }) => body['worldGeneration'])).toEqual(
    Array.from({ length: lives }, (_, life) => String(life + 1)),
  );
  const last = new Map<string, string>();
  for (const { kind, body } of facts.filter((fact) => fact.kind in after)) {
    const worker = String(body['workerRef']);
    const before = last.get(worker);
    expect(before === undefined ? kind : (after[kind] ?? '').split(' ')).toContain(
      before ?? 'worker-opened',
    );
    last.set(worker, kind);
  }
}

/** Authority killed while agents sit down and start programs: no seat is lost for good. */
async function killedAmongRuns(subject: Subject, rounds: number): Promise<void> {
  const chance = Chance.drawnFor('authority killed among runs');
  await using room = await Room.open(subject, {
    authority: { WHEELHOUSE_REBIND_GRACE_MS: '500' },
  });
  const { stack } = room;
  for (let round = 0; round < rounds; round += 1) {
    const running = runsUntilCut(room);
    await chance.moment(20, 250);
    await stack.crash('authority');
    await within('every call ends', 20_000, running);
    await stack.restart('authority');
    await stack.joined();
    await eventually('the seat is free again', async () => (await runsOnce(room)) === 'ENDED');
  }
  await nothingLeft(stack);
  expectNoBugs(stack);
}

async function runsUntilCut(room: Room): Promise<void> {
  for (let outcome = 'ENDED'; outcome !== 'cut'; ) {
    outcome = await runsOnce(room).catch(howItFailed);
    // The one before leaves on a connection of its own, and may be heard of later than the next.
    expect(['ENDED', 'LOCUS_OCCUPIED', 'cut']).toContain(outcome);
  }
}

function howItFailed(error: unknown): string {
  if (error instanceof UnreachableError) {
    return 'cut';
  }
  const reason = error instanceof RefusedError ? error.refusal.reason : String(error);
  return reason.includes('UNREACHABLE') ? 'cut' : reason;
}

/** Leaves nothing bound behind, however far it came. */
async function runsOnce({ stack, agent, worker }: Room): Promise<string> {
  using bind = await boundAgent(stack, agent);
  const endpoint = await new Workers(bind.authority).occupy(worker);
  using data = connect(endpoint, 'data', bind.identity);
  const geometry = { rows: 24, cols: 80 };
  const terms = { worker, argv: ['true'], env: {}, geometry, isHeadless: true };
  const possession = await Possession.open(data, terms, { take: () => undefined });
  return reasonOf(await possession.ended);
}

/** A drain is a restart with notice: streams end by name, and agents go on all the same. */
async function drained(subject: Subject): Promise<void> {
  await using room = await Room.open(subject);
  const { stack, worker } = room;
  await using run = await room.runs(raw(counting));
  const look = await room.operator.looksAt(worker);
  await look.shows(/\d/);
  const { lost } = room.operator.bind;
  await stack.drain('authority');
  expect(await lost).toMatchObject({ refusal: { reason: 'SERVICE_DRAINING' } });
  await stack.restart('authority');
  await stack.joined();
  expect(reasonOf(await exactToItsEnd(look))).toBe('WORLD_RESTARTED');
  await using operator = await Operator.at(stack);
  const next = await looksAgain(operator, worker);
  await next.shows(/\d/);
  await operator.workers.close(worker);
  await exactToItsEnd(next);
  expect(reasonOf(await exactToItsEnd(run))).toBe('WORKER_CLOSED');
  await nothingLeft(stack);
  expectNoBugs(stack);
}

describe('authority crashes', () => {
  test('killed under flood: looks close world-restarted, agents go on byte for byte', () =>
    killedUnderFlood(product, { rounds: 5 }));
  falsifier(
    'a new world ends every presentation',
    {
      file: 'services/data/carriers.ts',
      find: 'carrier.endPresentation(presentationsEnd)',
      replace: 'void presentationsEnd',
    },
    (subject) => killedUnderFlood(subject, { rounds: 1, holdLimitMs: 1_500 }),
  );
  falsifier(
    'a return makes new epochs',
    {
      file: 'services/authority/domain/world.ts',
      find: 'epoch(current + 1n)',
      replace: 'epoch(current)',
    },
    (subject) => killedUnderFlood(subject, { rounds: 1 }),
  );

  test('an agent not back within the grace is hung up agent-unbound', () =>
    notBackInTime(product, 3_000));
  falsifier(
    'the grace of seats that a restart found',
    { file: 'services/authority/start.ts', find: 'room.graces.beginAll();', replace: '' },
    (subject) => notBackInTime(subject, 1_000),
  );

  test('a closing in progress is finished by the next life', () => closingFinishes(product));
  falsifier(
    'closings are taken up',
    { file: 'services/authority/start.ts', find: 'room.closings.beginAll();', replace: '' },
    (subject) => closingFinishes(subject, 3_000),
  );
  test('killed at any moment of a closing: not begun, or finished', () =>
    killedWhileClosing(product, 5));

  test('killed among commands: what was acknowledged stands, and the journal is legal', () =>
    killedAmongCommands(product, 8));
  falsifier(
    'durable before it is acknowledged',
    {
      file: 'services/authority/authority.ts',
      find: ': store.append(events, clock.now())',
      replace: ': (setTimeout(() => store.append(events, clock.now()), 20), granted(undefined))',
    },
    (subject) => killedAmongCommands(subject, 6),
  );
  test('killed while agents sit down: no seat is lost for good', () => killedAmongRuns(product, 4));

  test('drained: streams end by name, and agents go on', () => drained(product));
});
