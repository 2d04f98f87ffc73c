/** What a possession and a presentation say to their streams, against doubles of all that is around them. */
import { expect, test } from 'vitest';
import type { PossessResponse, PresentResponse } from '#gen/wheelhouse/data/v1/data.js';
import type { Clock } from '#kernel/clock.js';
import { granted, type Outcome, refused } from '#kernel/outcome.js';
import { epoch, generation, ref } from '#kernel/refs.js';
import { Carrier } from '../carrier.js';
import { loadConfig } from '../config.js';
import type { Grant } from '../domain/basis.js';
import type { AuthorityLink, Designation } from '../domain/link.js';
import type { Geometry, Terminal } from '../domain/terminal.js';
import { Possessor, type PossessStream } from './possessor.js';
import { Presenter, type PresentStream } from './presenter.js';

const grant: Grant = {
  workerRef: ref('wk_1'),
  workerGeneration: generation(1n),
  carrierRef: ref('cr_1'),
  attachmentRef: ref('at_1'),
  attachmentEpoch: epoch(1n),
  carrierEpoch: epoch(1n),
  authorityEpoch: 1n,
  stream: 1,
};
const config = loadConfig({ WHEELHOUSE_STATE: '/nowhere' });
const designation: Designation = {
  caller: 1,
  workerRef: grant.workerRef,
  expectedGeneration: grant.workerGeneration,
};

type Said = NonNullable<(PossessResponse | PresentResponse)['event']> | { $case: 'frame' };

/** A double: one stream, whose transport takes a frame when it is told to. */
class StreamDouble {
  readonly said: Said[] = [];
  taken: (() => void) | undefined;
  resetCount = 0;
  readonly isOver = false;
  readonly backlog = 0;

  send(message: { event?: Said }, onTaken?: () => void): void {
    this.said.push(message.event ?? { $case: 'frame' });
    this.taken = onTaken ?? this.taken;
  }

  reset(): void {
    this.resetCount += 1;
  }

  end(): void {}
  endOrReset(): void {}
  pause(): void {}
  resume(): void {}

  cases(): string[] {
    return this.said.map(({ $case }) => $case);
  }
}

/** Doubles of authority, of time and of a terminal that has only its size. */
class Around {
  readonly answers: ((answer: Outcome<Grant>) => void)[] = [];
  readonly timers: (() => void)[] = [];
  readonly sizes: Geometry[] = [];
  readonly link = {
    ask: (_question: unknown, onAnswer: (answer: Outcome<Grant>) => void) =>
      this.answers.push(onAnswer),
    farewell: () => undefined,
    presentationEnded: () => undefined,
    isFenced: () => false,
    release: () => Promise.resolve(granted(undefined)),
  } as Partial<AuthorityLink> as AuthorityLink;
  readonly clock: Clock = {
    now: () => 0,
    monotonic: () => 0,
    after: (_ms, call) => {
      this.timers.push(call);
      return { [Symbol.dispose]: () => this.timers.splice(this.timers.indexOf(call), 1) };
    },
  };
  readonly terminal = {
    producedSeq: 10n,
    releasedSeq: 0n,
    end: undefined,
    isFull: false,
    hangUp: () => Promise.resolve(),
    release: () => undefined,
    copyOut: (_from: bigint, target: Uint8Array) => target.length,
    write: () => 0,
    resize: (geometry: Geometry) => {
      this.sizes.push(geometry);
      return geometry;
    },
  } as Partial<Terminal> as Terminal;

  possessor(stream: StreamDouble): Possessor {
    const { link, clock, terminal } = this;
    const parts = { link, clock, config, designation, windowBytes: 4096, isHeadless: false };
    return new Possessor(
      { ...parts, stream: stream as unknown as PossessStream },
      {
        terminal,
        admits: () => true,
        onResized: () => undefined,
        onPossessorMoved: () => undefined,
        onPossessorClosed: () => undefined,
      },
    );
  }

  presenter(stream: StreamDouble): Presenter {
    const { link, clock, terminal } = this;
    return new Presenter({
      link,
      clock,
      config,
      designation,
      grant,
      presentation: 1n,
      windowBytes: 4096,
      holdLimitMs: 1_000,
      stream: stream as unknown as PresentStream,
      holder: {
        basis: grant,
        terminal,
        holdLeftMs: () => 1_000,
        heldBetween: () => undefined,
        onHoldBegan: () => undefined,
        onPresenterMoved: () => undefined,
        onPresenterClosed: () => undefined,
        onPresenterGone: () => undefined,
      },
    });
  }
}

function resize(request: bigint, rows: number): Parameters<Possessor['hear']>[0] {
  return { operation: { $case: 'resize', value: { request, geometry: { rows, cols: 80 } } } };
}

test('a size asked for while an older one was refused is asked for in its own right', () => {
  const around = new Around();
  const stream = new StreamDouble();
  const possessor = around.possessor(stream);
  possessor.hear(resize(1n, 30));
  possessor.hear(resize(2n, 40));
  around.answers[0]?.(refused('AGENT_CHANNEL_NOT_BOUND'));
  around.answers[1]?.(granted(grant));
  expect(stream.said).toMatchObject([{ $case: 'refused', value: { request: 1n } }]);
  expect(around.sizes).toEqual([{ rows: 40, cols: 80 }]);
});

test.each([
  ['refused', refused('AGENT_CHANNEL_NOT_BOUND')],
  ['granted', granted(grant)],
])('an answer that comes %s after Closed says and does nothing', (_how, answer) => {
  const around = new Around();
  const stream = new StreamDouble();
  const possessor = around.possessor(stream);
  const payload = Buffer.from('x');
  possessor.hear({ operation: { $case: 'input', value: { seq: 0n, payload } } });
  possessor.hear(resize(1n, 30));
  possessor.end('WORKER_CLOSED');
  const timerCount = around.timers.length;
  for (const answered of around.answers) {
    answered(answer);
  }
  expect(stream.cases()).toEqual(['closed']);
  expect(around.sizes).toEqual([]);
  expect(around.timers).toHaveLength(timerCount);
});

test('P7 two fences at once wait for the same frame, and a reader that takes it is told why', async () => {
  const around = new Around();
  const stream = new StreamDouble();
  const presenter = around.presenter(stream);
  presenter.progressed(20n, undefined);
  around.answers[0]?.(granted(grant));
  const fences = Promise.all([presenter.fence('WORKER_CLOSED'), presenter.fence('WORKER_CLOSED')]);
  stream.taken?.();
  await fences;
  expect(stream.cases()).toEqual(['frame', 'closed']);
  expect(stream.resetCount).toBe(0);
});

test('P7 a terminal that is hung up is kept until its last look has left the transport', async () => {
  const around = new Around();
  const { link, clock, terminal } = around;
  const gone: string[] = [];
  const stream = new StreamDouble();
  const carrier = new Carrier({
    basis: grant,
    link,
    clock,
    config,
    geometry: { rows: 24, cols: 80 },
    spawn: () => terminal,
    possessor: {
      link,
      clock,
      config,
      designation,
      windowBytes: 4096,
      isHeadless: true,
      stream: new StreamDouble() as unknown as PossessStream,
    },
    onDetached: () => undefined,
    onStatus: () => undefined,
    onHungUp: () => gone.push('terminal'),
    onGone: () => gone.push('all'),
  });
  carrier.begin();
  const presenter = carrier.present({
    link,
    clock,
    config,
    designation,
    grant,
    presentation: 1n,
    windowBytes: 4096,
    holdLimitMs: 1_000,
    stream: stream as unknown as PresentStream,
  });
  presenter.progressed(20n, undefined);
  around.answers[0]?.(granted(grant));
  carrier.end('RELEASED');
  await new Promise((resolve) => setImmediate(resolve));
  expect(gone).toEqual(['terminal']);
  const fenced = carrier.fencePresentations('WORKER_CLOSED');
  around.timers.at(-1)?.();
  await fenced;
  expect(stream.resetCount).toBe(1);
  presenter.gone();
  expect(gone).toEqual(['terminal', 'all']);
});
