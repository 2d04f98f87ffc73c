import { afterEach, beforeAll, expect, test } from 'vitest';
import { statusOf, toCloseReason } from '#chassis/refusal-status.js';
import type { PresentResponse } from '#gen/wheelhouse/data/v1/data.js';
import { RefusedError, UnreachableError } from './call-errors.js';
import { connect, type DataConnection } from './connect.js';
import { Presentation } from './presentation.js';
import { DoubledRoot, type PresentCall, ServiceDouble } from './service-double.js';

let root: DoubledRoot;
const owned: Disposable[] = [];

beforeAll(async () => {
  root = await DoubledRoot.mint();
});
afterEach(() => {
  for (const resource of owned.splice(0).reverse()) {
    resource[Symbol.dispose]();
  }
});

const worker = { workerRef: 'wk_1', generation: 1n };
const geometry = { rows: 24, cols: 80 };

async function serving(present: (call: PresentCall) => void): Promise<DataConnection> {
  const service = await ServiceDouble.start(root, 'data', { present });
  const connection = connect(service.endpoint, 'data', await root.identity('human-control', 'ada'));
  owned.push(service, connection);
  return connection;
}

type Event = NonNullable<PresentResponse['event']>;

function opened(windowBytes = 1024, outSeq = 100n): Event {
  return { $case: 'opened', value: { outSeq, geometry, windowBytes } };
}

function output(seq: bigint, text: string): Event {
  return { $case: 'output', value: { seq, payload: Buffer.from(text) } };
}

function closed(reason: 'WORKER_CLOSED' | 'ENDED' | 'RELEASED', seq: bigint): Event {
  const value = { reason: toCloseReason(reason), ackedSeq: 100n, sentSeq: seq, producedSeq: seq };
  return { $case: 'closed', value: { ...value, exit: undefined } };
}

/** Answers the first message with events, and records every acknowledgement. */
function scripted(events: readonly Event[], acks: bigint[] = [], thenEnd = true) {
  return (call: PresentCall): void => {
    call.on('error', () => undefined);
    call.on('data', ({ operation }) => {
      if (operation?.$case === 'ack') {
        acks.push(operation.value.nextSeq);
      }
      if (operation?.$case === 'open') {
        for (const event of events) {
          call.write({ event });
        }
        if (thenEnd) {
          call.end();
        }
      }
    });
  };
}

function gathering(): { taken: string[]; take: (bytes: Buffer) => void } {
  const taken: string[] = [];
  return { taken, take: (bytes) => void taken.push(bytes.toString()) };
}

test('bytes are passed on in order, acknowledged as taken, and the reason closes', async () => {
  const acks: bigint[] = [];
  const data = await serving(
    scripted([opened(), output(100n, 'hel'), output(103n, 'lo'), closed('ENDED', 105n)], acks),
  );
  const { taken, take } = gathering();
  const look = await Presentation.open(data, { worker }, { take });
  expect(look.opening).toEqual({ outSeq: 100n, geometry });
  expect(await look.ended).toMatchObject({ kind: 'closed', reason: 'ENDED', sentSeq: 105n });
  expect(taken.join('')).toBe('hello');
  expect(look.takenSeq).toBe(105n);
});

test.each([
  { what: 'a gap', second: output(104n, 'lo') },
  { what: 'a repeat', second: output(100n, 'hel') },
])(
  '$what ends it as lost at its own position, and nothing after is passed on',
  async ({ second }) => {
    const data = await serving(
      scripted([opened(), output(100n, 'hel'), second, output(103n, 'lo')], [], false),
    );
    const { taken, take } = gathering();
    const look = await Presentation.open(data, { worker }, { take });
    expect(await look.ended).toMatchObject({ kind: 'lost', takenSeq: 103n });
    expect(taken.join('')).toBe('hel');
  },
);

test('nothing is passed on after Closed, even if the service goes on', async () => {
  const data = await serving(
    scripted([opened(), output(100n, 'a'), closed('WORKER_CLOSED', 101n), output(101n, 'b')]),
  );
  const { taken, take } = gathering();
  const look = await Presentation.open(data, { worker }, { take });
  expect(await look.ended).toMatchObject({ kind: 'closed', reason: 'WORKER_CLOSED' });
  expect(taken).toEqual(['a']);
});

test('what is not taken is neither acknowledged nor followed by more', async () => {
  const acks: bigint[] = [];
  const data = await serving(
    scripted([opened(), output(100n, 'one'), output(103n, 'two')], acks, false),
  );
  let release: () => void = () => undefined;
  const seen: string[] = [];
  const look = await Presentation.open(
    data,
    { worker },
    {
      take: (bytes) => {
        seen.push(bytes.toString());
        return new Promise<void>((resolve) => {
          release = resolve;
        });
      },
    },
  );
  await until(() => seen.length === 1);
  expect(acks).toEqual([]);
  expect(look.takenSeq).toBe(100n);
  release();
  await until(() => seen.length === 2);
  expect(seen).toEqual(['one', 'two']);
  await until(() => acks.length > 0);
  expect(acks).toEqual([103n]);
});

test('a cut stream is lost at the taken position, and a frame still held back is never passed on', async () => {
  let call: PresentCall | undefined;
  const data = await serving((incoming) => {
    call = incoming;
    scripted([opened(), output(100n, 'x'), output(101n, 'y')], [], false)(incoming);
  });
  const seen: string[] = [];
  let release: () => void = () => undefined;
  const look = await Presentation.open(
    data,
    { worker },
    {
      take: (bytes) => {
        seen.push(bytes.toString());
        return new Promise<void>((resolve) => {
          release = resolve;
        });
      },
    },
  );
  await until(() => seen.length === 1);
  call?.emit('error', { code: 14, details: 'gone' });
  expect(await look.ended).toMatchObject({ kind: 'lost', takenSeq: 100n });
  release();
  await new Promise((resolve) => setImmediate(resolve));
  expect(seen).toEqual(['x']);
});

test('END with every byte here is an end, though the transport breaks before the reason', async () => {
  const exit = { how: { $case: 'code', value: 7 } } as const;
  const end: Event = { $case: 'end', value: { outSeq: 101n, exit } };
  const data = await serving(scripted([opened(), output(100n, 'x'), end]));
  const look = await Presentation.open(data, { worker }, gathering());
  const ended = await look.ended;
  expect(ended).toMatchObject({ kind: 'closed', reason: 'ENDED', exit: { kind: 'code', code: 7 } });
});

test('a refusal arrives by its name and facts', async () => {
  const refusal = { reason: 'LOCUS_NOT_OCCUPIED', facts: { worker: 'demo' } } as const;
  const data = await serving((call) => {
    call.on('error', () => undefined);
    call.emit('error', statusOf(refusal));
  });
  const failure = Presentation.open(data, { worker }, gathering());
  await expect(failure).rejects.toBeInstanceOf(RefusedError);
  await expect(failure).rejects.toMatchObject({ refusal });
});

test('closed before it began is a close, and the opening is refused by its name', async () => {
  const data = await serving(scripted([closed('WORKER_CLOSED', 0n)]));
  const failure = Presentation.open(data, { worker }, gathering());
  await expect(failure).rejects.toBeInstanceOf(RefusedError);
  await expect(failure).rejects.toMatchObject({ refusal: { reason: 'WORKER_CLOSED', facts: {} } });
});

test('closed before it began for what is no refusal says what for', async () => {
  const data = await serving(scripted([closed('RELEASED', 0n)]));
  const failure = Presentation.open(data, { worker }, gathering());
  await expect(failure).rejects.toBeInstanceOf(UnreachableError);
  await expect(failure).rejects.toThrow(/closed at once: released/);
});

test('nobody answering is not a refusal', async () => {
  const identity = await root.identity('human-control', 'ada');
  using data = connect('127.0.0.1:1', 'data', identity);
  const failure = Presentation.open(data, { worker }, gathering());
  await expect(failure).rejects.toBeInstanceOf(UnreachableError);
});

test('another service than the one meant is turned away', async () => {
  const service = await ServiceDouble.start(root, 'authority', {});
  owned.push(service);
  using data = connect(service.endpoint, 'data', await root.identity('human-control', 'ada'));
  const failure = Presentation.open(data, { worker }, gathering());
  await expect(failure).rejects.toThrow(/not the data service/);
});

test('detaching acknowledges what was taken and passes nothing more on', async () => {
  const acks: bigint[] = [];
  const data = await serving((call) => {
    scripted([opened(1 << 20)], acks, false)(call);
    call.on('data', ({ operation }) => {
      if (operation?.$case === 'open') {
        call.write({ event: output(100n, 'z'.repeat(20_000)) });
      }
    });
    call.on('end', () => {
      call.write({ event: output(20_100n, 'late') });
      call.end();
    });
  });
  const { taken, take } = gathering();
  const look = await Presentation.open(data, { worker }, { take });
  await until(() => taken.length === 1);
  expect(acks).toEqual([]);
  expect(await look.detach()).toEqual({ kind: 'detached', takenSeq: 20_100n, sender: undefined });
  expect(taken).toHaveLength(1);
  expect(acks).toEqual([20_100n]);
});

async function until(isTrue: () => boolean): Promise<void> {
  while (!isTrue()) {
    await new Promise((resolve) => setImmediate(resolve));
  }
}
