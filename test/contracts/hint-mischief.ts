/**
 * Somebody between two brokers who passes hints on: loses some, repeats, delays and reorders others, and
 * adds what was never said. It holds authority's key, which is the worst that could be stolen.
 */
import { setTimeout as delay } from 'node:timers/promises';
import type { NatsConnection } from 'nats';
import { Hint } from '#gen/wheelhouse/bus/v1/bus.js';
import type { Chance } from '../scenarios/chance.js';
import type { Broker } from './broker.js';

const SUBJECT = 'wheelhouse.hint.authority';
const NEVER = 2n ** 64n - 1n;

export class HintMischief implements AsyncDisposable {
  readonly #chance: Chance;
  readonly #heard: NatsConnection;
  readonly #says: NatsConnection;
  /** What was done to how many, to be printed. */
  readonly done = { passed: 0, lost: 0, repeated: 0, delayed: 0, invented: 0 };

  private constructor(chance: Chance, heard: NatsConnection, says: NatsConnection) {
    this.#chance = chance;
    this.#heard = heard;
    this.#says = says;
    heard.subscribe(SUBJECT, {
      callback: (_error, { data }) => this.#passOn(data),
    });
  }

  static async between(from: Broker, to: Broker, chance: Chance): Promise<HintMischief> {
    const [heard, says] = [await from.connect('control'), await to.connect('authority')];
    return new HintMischief(chance, heard, says);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#heard.close();
    await this.#says.close();
  }

  #passOn(data: Uint8Array): void {
    const { index } = Hint.decode(data);
    switch (this.#chance.between(0, 4)) {
      case 0:
        this.done.lost += 1;
        return;
      case 1:
        this.done.repeated += 1;
        this.#say(data, data, data);
        return;
      case 2:
        this.done.delayed += 1;
        void delay(this.#chance.between(1, 300), undefined, { ref: false }).then(() =>
          this.#say(data),
        );
        return;
      case 3:
        this.done.invented += 1;
        this.#invent(index);
        return;
      default:
        this.done.passed += 1;
        this.#say(data);
    }
  }

  /** From yesterday's world, from the future, and no hint at all. */
  #invent(index: bigint): void {
    for (const other of [index + 1_000n, 1n, 0n, NEVER, index * 7n]) {
      this.#say(Hint.encode({ index: other }).finish());
    }
    this.#say(Uint8Array.of(0xff, 0xff), new Uint8Array(), new Uint8Array(900).fill(0x80));
  }

  #say(...all: readonly Uint8Array[]): void {
    for (const data of all) {
      if (!this.#says.isClosed()) {
        this.#says.publish(SUBJECT, data);
      }
    }
  }
}
