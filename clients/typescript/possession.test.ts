import { afterEach, beforeAll, expect, test } from 'vitest';
import { statusOf, toCloseReason, toRefused } from '#chassis/refusal-status.js';
import type { PossessRequest } from '#gen/wheelhouse/data/v1/data.js';
import { connect, type DataConnection } from './connect.js';
import { Possession } from './possession.js';
import { DoubledRoot, type PossessCall, ServiceDouble } from './service-double.js';

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

const terms = {
  worker: { workerRef: 'wk_1', generation: 1n },
  argv: ['cat'],
  env: { A: '1' },
  geometry: { rows: 24, cols: 80 },
  isHeadless: false,
};
const RELEASED = toCloseReason('RELEASED');
const ignoring = { take: (): void => undefined };

type Asked = NonNullable<PossessRequest['operation']>;

async function serving(answer: (call: PossessCall, asked: Asked) => void): Promise<DataConnection> {
  const service = await ServiceDouble.start(root, 'data', {
    possess: (call) => {
      call.on('error', () => undefined);
      call.on('data', ({ operation }) => {
        if (operation?.$case === 'open') {
          const opened = { outSeq: 0n, geometry: operation.value.geometry, windowBytes: 4096 };
          call.write({ event: { $case: 'opened', value: opened } });
        }
        if (operation !== undefined) {
          answer(call, operation);
        }
      });
    },
  });
  const connection = connect(service.endpoint, 'data', await root.identity('agent', 'demo'));
  owned.push(service, connection);
  return connection;
}

function ack(call: PossessCall, nextSeq: bigint): void {
  call.write({ event: { $case: 'inputAck', value: { nextSeq } } });
}

test('the program is asked for as given', async () => {
  const asked: Asked[] = [];
  const data = await serving((_call, operation) => asked.push(operation));
  await Possession.open(data, terms, ignoring);
  expect(asked).toMatchObject([
    { $case: 'open', value: { argv: ['cat'], env: { A: '1' }, headless: false } },
  ]);
});

test('input is one frame at a time, and written once even when its end is refused', async () => {
  const terminal: Buffer[] = [];
  let refusals = 0;
  const data = await serving((call, operation) => {
    if (operation.$case !== 'input') {
      return;
    }
    const { seq, payload } = operation.value;
    expect(seq).toBe(BigInt(Buffer.concat(terminal).length));
    const isCut = refusals < 3;
    const accepted = isCut ? 100 : payload.length;
    terminal.push(Buffer.from(payload.subarray(0, accepted)));
    ack(call, seq + BigInt(accepted));
    if (isCut) {
      refusals += 1;
      const facts = { acceptedSeq: String(seq + 100n) };
      const refused = toRefused({ reason: 'TERMINAL_NOT_READING', facts });
      call.write({ event: { $case: 'refused', value: refused } });
    }
  });
  const possession = await Possession.open(data, terms, ignoring);
  const paste = Buffer.from(Array.from({ length: 10_000 }, (_, index) => index % 256));
  await possession.write(paste);
  expect(Buffer.concat(terminal).equals(paste)).toBe(true);
});

test('a refused resize names itself and the stream goes on', async () => {
  const data = await serving((call, operation) => {
    if (operation.$case === 'resize') {
      const refused = toRefused({ reason: 'GEOMETRY_INVALID', facts: {} }, operation.value.request);
      call.write({ event: { $case: 'refused', value: refused } });
    }
    if (operation.$case === 'input') {
      ack(call, operation.value.seq + BigInt(operation.value.payload.length));
    }
  });
  const refusals: (string | undefined)[] = [];
  const possession = await Possession.open(data, terms, {
    ...ignoring,
    resizeRefused: (refusal) => refusals.push(refusal?.reason),
  });
  possession.resize({ rows: 0, cols: 0 });
  await possession.write(Buffer.from('still here'));
  expect(refusals).toEqual(['GEOMETRY_INVALID']);
});

test('a write never waits for a terminal that is gone', async () => {
  const data = await serving((call, operation) => {
    if (operation.$case === 'input') {
      call.emit('error', { code: 14, details: 'gone' });
    }
  });
  const possession = await Possession.open(data, terms, ignoring);
  await possession.write(Buffer.from('into the void'));
  expect(await possession.ended).toMatchObject({ kind: 'lost' });
});

test('an agent that has left reads to the last byte and the reason, and sends nothing more', async () => {
  const payload = Buffer.alloc(1024, 'x');
  const heard: string[] = [];
  const data = await serving((call, { $case }) => {
    heard.push($case);
    if ($case === 'open') {
      // What a terminal still says while it is hung up is more than one acknowledgement's worth.
      call.on('end', () => {
        for (let seq = 0n; seq < 8192n; seq += 1024n) {
          call.write({ event: { $case: 'output', value: { seq, payload } } });
        }
        const positions = { ackedSeq: 0n, sentSeq: 8192n, producedSeq: 8192n, exit: undefined };
        call.write({ event: { $case: 'closed', value: { reason: RELEASED, ...positions } } });
        call.end();
      });
    }
  });
  let taken = 0;
  const take = (bytes: Buffer): void => {
    taken += bytes.length;
  };
  const possession = await Possession.open(data, terms, { take });
  possession.end();
  await possession.write(Buffer.from('too late'));
  expect(await possession.ended).toMatchObject({ kind: 'closed', reason: 'RELEASED' });
  expect({ taken, heard }).toEqual({ taken: 8192, heard: ['open'] });
});

test('a program that cannot be started is refused by name and cause', async () => {
  const refusal = {
    reason: 'SPAWN_FAILED',
    facts: { cause: 'not-found', file: 'nosuch' },
  } as const;
  const service = await ServiceDouble.start(root, 'data', {
    possess: (call) => {
      call.on('error', () => undefined);
      call.emit('error', statusOf(refusal));
    },
  });
  using data = connect(service.endpoint, 'data', await root.identity('agent', 'demo'));
  owned.push(service);
  await expect(Possession.open(data, terms, ignoring)).rejects.toMatchObject({ refusal });
});
