/**
 * Case C059: each service killed and started again twenty times under load.
 *
 * A dropped connection must not stop whoever had it: while one service is killed, the other one and this
 * process are timed, and compared with what they took in the same run before anything was killed.
 * Whatever was asked of the killed one ends with a status.
 */
import { type IntervalHistogram, monitorEventLoopDelay } from 'node:perf_hooks';
import { setTimeout as delay } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { RefusedError } from '#client/call-errors.js';
import type { DataConnection } from '#client/connect.js';
import { within } from '../stack/eventually.js';
import type { Plane } from '../stack/stack.js';
import { type AgentRun, type Look, Operator, raw } from './actors.js';
import { expectCounted, expectNoBugs, nothingLeft } from './aftermath.js';
import { Chance } from './chance.js';
import { counting } from './counting.js';
import { product, Room } from './room.js';

const TIMES = 20;
const PROBE_EVERY_MS = 10;
const BASELINE_MS = 1_500;
/** What a machine that others use too may add to any answer: a frozen process gives none at all. */
const NOISE_MS = 2_000;

/** Asks, over and over, for an answer that takes one turn of the asked process. */
class Probe {
  readonly #ask: () => Promise<unknown>;
  readonly #done: Promise<void>;
  #slowestMs = 0;
  #answers = 0;
  #isAsking = true;

  constructor(ask: () => Promise<unknown>) {
    this.#ask = ask;
    this.#done = this.#go();
  }

  async stops(): Promise<void> {
    this.#isAsking = false;
    await within('every call ends with a status', 20_000, this.#done);
  }

  /** How long the slowest answer took, in milliseconds. There must have been some. */
  get slowestMs(): number {
    expect(this.#answers).toBeGreaterThan(0);
    return this.#slowestMs;
  }

  async #go(): Promise<void> {
    while (this.#isAsking) {
      const askedAt = performance.now();
      if (await isAnswered(this.#ask())) {
        this.#answers += 1;
        this.#slowestMs = Math.max(this.#slowestMs, performance.now() - askedAt);
      }
      await delay(PROBE_EVERY_MS);
    }
  }
}

/** A ruling is an answer; a service that is down gives none. */
async function isAnswered(call: Promise<unknown>): Promise<boolean> {
  return await call.then(
    () => true,
    (error: unknown) => error instanceof RefusedError,
  );
}

type Probes = Readonly<Record<Plane, Probe>>;

function probing({ workers, data }: Operator): Probes {
  return {
    authority: new Probe(() => workers.list()),
    data: new Probe(() => nothingAsked(data)),
  };
}

async function stop({ authority, data }: Probes): Promise<void> {
  await Promise.all([authority.stops(), data.stops()]);
}

/** A look that leaves before it has asked for anything. */
function nothingAsked({ client }: DataConnection): Promise<void> {
  return new Promise((resolve, reject) => {
    const call = client.present();
    call.on('error', reject).on('end', resolve).resume();
    call.end();
  });
}

type Figures = Readonly<Record<Plane | 'own', number>>;

/** While an agent floods and an operator looks, and nothing is killed. */
async function undisturbed(room: Room, own: IntervalHistogram): Promise<Figures> {
  await using operator = await Operator.at(room.stack);
  await using run = await room.runs(raw(counting));
  const look = await operator.looksAt(room.worker);
  const probes = probing(operator);
  await delay(BASELINE_MS);
  await stop(probes);
  await look.presentation.detach();
  await run[Symbol.asyncDispose]();
  const { authority, data } = probes;
  return { authority: authority.slowestMs, data: data.slowestMs, own: slowest(own) };
}

function slowest(histogram: IntervalHistogram): number {
  const slowestMs = histogram.max / 1e6;
  histogram.reset();
  return slowestMs;
}

/** What was read, to be compared when nothing is timed any more. */
interface Reading {
  readonly reader: Look | AgentRun;
  readonly fromSeq: bigint;
}

/** Ends one life of each service. Returns how long the other one's slowest answer took. */
async function killsBoth(
  room: Room,
  chance: Chance,
  readings: Reading[],
): Promise<Omit<Figures, 'own'>> {
  await using run = await room.runs(raw(counting));
  readings.push({ reader: run, fromSeq: 0n });
  const data = await killsAuthority(room, chance, readings);
  const authority = await killsData(room, run);
  return { authority, data };
}

async function killsAuthority(room: Room, chance: Chance, readings: Reading[]): Promise<number> {
  const { stack, worker } = room;
  await using operator = await Operator.at(stack);
  const look = await operator.looksAt(worker);
  readings.push({ reader: look, fromSeq: look.presentation.opening.outSeq });
  const probes = probing(operator);
  await chance.moment(0, 100);
  await stack.crash('authority');
  await within('the bind ends', 20_000, operator.bind.lost);
  await stack.restart('authority');
  await stack.joined();
  await within('the look ends', 20_000, look.ended);
  await stop(probes);
  return probes.data.slowestMs;
}

async function killsData({ stack }: Room, run: AgentRun): Promise<number> {
  await using operator = await Operator.at(stack);
  const probes = probing(operator);
  await stack.crash('data');
  await within('the run ends', 20_000, run.ended);
  await stack.restart('data');
  await stack.joined();
  await stop(probes);
  return probes.authority.slowestMs;
}

test('C059 killed and started again twenty times under load: nobody else stands still, every call ends', async () => {
  const chance = Chance.drawnFor('each service killed twenty times');
  await using room = await Room.open(product);
  const own = monitorEventLoopDelay({ resolution: 5 });
  own.enable();
  const before = await undisturbed(room, own);
  const figures: Figures[] = [];
  const readings: Reading[] = [];
  for (let time = 0; time < TIMES; time += 1) {
    figures.push({ ...(await killsBoth(room, chance, readings)), own: slowest(own) });
  }
  own.disable();
  for (const who of ['authority', 'data', 'own'] as const) {
    const slowestMs = Math.max(...figures.map((each) => each[who]));
    expect(slowestMs).toBeLessThan(10 * before[who] + NOISE_MS);
  }
  for (const { reader, fromSeq } of readings) {
    expectCounted(reader.received, fromSeq);
  }
  await nothingLeft(room.stack);
  expectNoBugs(room.stack);
}, 300_000);
