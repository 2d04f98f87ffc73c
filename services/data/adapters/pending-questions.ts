/**
 * Questions to authority between their asking and their answers.
 *
 * A batch is everything queued when it is taken; what is asked later never joins it (law P6).
 */
import type { Outcome } from '#kernel/outcome.js';
import type { Grant } from '../domain/basis.js';
import type { Question } from '../domain/link.js';

export interface Asked {
  readonly question: Question;
  readonly onAnswer: (answer: Outcome<Grant>) => void;
  readonly onLost: () => void;
}

export interface QuestionBatch {
  readonly batch: bigint;
  readonly questions: readonly Question[];
}

/** Bounded by who asks: one question at a time for each presentation, input line and resize. */
export class PendingQuestions {
  readonly #questionsMax: number;
  #queue: Asked[] = [];
  readonly #sent = new Map<bigint, readonly Asked[]>();
  #lastBatch = 0n;

  /** `questionsMax` is the most that one batch may hold. */
  constructor(questionsMax: number) {
    this.#questionsMax = questionsMax;
  }

  ask(asked: Asked): void {
    this.#queue.push(asked);
  }

  /** The next batch to send; undefined when nothing is queued. */
  take(): QuestionBatch | undefined {
    if (this.#queue.length === 0) {
      return undefined;
    }
    const asked = this.#queue.splice(0, this.#questionsMax);
    this.#lastBatch += 1n;
    this.#sent.set(this.#lastBatch, asked);
    return { batch: this.#lastBatch, questions: asked.map(({ question }) => question) };
  }

  /** Answers a batch, in the order of its questions. A batch that is not waited for is no one's. */
  answer(batch: bigint, answerOf: (index: number, question: Question) => Outcome<Grant>): void {
    const asked = this.#sent.get(batch) ?? [];
    this.#sent.delete(batch);
    for (const [index, { question, onAnswer }] of asked.entries()) {
      onAnswer(answerOf(index, question));
    }
  }

  /** Nobody will answer: everyone who waits is told, once. */
  lose(): void {
    const lost = [...this.#sent.values()].flat().concat(this.#queue);
    this.#sent.clear();
    this.#queue = [];
    for (const { onLost } of lost) {
      onLost();
    }
  }
}
