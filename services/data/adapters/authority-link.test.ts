/** The resolve stream against a double of authority's end: order, batches, fences, breaks. */
import { EventEmitter } from 'node:events';
import { beforeEach, expect, test } from 'vitest';
import { createLogger } from '#chassis/logger.js';
import type { AuthorityServiceClient } from '#gen/wheelhouse/authority/v1/authority.js';
import {
  FenceScope,
  Operation,
  type ResolveRequest,
  type ResolveResponse,
} from '#gen/wheelhouse/authority/v1/authority.js';
import { CloseReason, Reason } from '#gen/wheelhouse/refusal/v1/refusal.js';
import type { Clock } from '#kernel/clock.js';
import type { Outcome } from '#kernel/outcome.js';
import { generation, ref, type WorkerRef } from '#kernel/refs.js';
import type { Grant } from '../domain/basis.js';
import type { FenceOrder, LinkEvents, Question } from '../domain/link.js';
import { ResolveStream } from './authority-link.js';

type Said = NonNullable<ResolveRequest['message']>;

/** A double: authority's end of one stream. */
class Double extends EventEmitter {
  readonly heard: Said[] = [];

  write({ message }: ResolveRequest): boolean {
    if (message !== undefined) {
      this.heard.push(message);
    }
    return true;
  }

  cancel(): void {
    this.emit('end');
  }

  says(message: NonNullable<ResolveResponse['message']>): void {
    this.emit('data', { message });
  }

  reconciles(world = 'wd_1'): void {
    this.says({
      $case: 'reconciled',
      value: { worldIncarnation: world, worldGeneration: 1n, authorityEpoch: 1n, verdicts: [] },
    });
  }

  batches(): Extract<Said, { $case: 'batch' }>['value'][] {
    return this.heard.flatMap((said) => (said.$case === 'batch' ? [said.value] : []));
  }
}

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
const worker = ref<WorkerRef>('wk_1');

let streams: Double[];
let orders: FenceOrder[];
let ends: string[];
let inForce: () => void;
let link: ResolveStream;

function introduced(...bytes: number[]): number {
  const caller = link.introduce(Uint8Array.from(bytes));
  return caller.kind === 'granted' ? caller.value : 0;
}

beforeEach(() => {
  streams = [];
  orders = [];
  ends = [];
  const client = {
    resolve: () => {
      const stream = new Double();
      streams.push(stream);
      return stream;
    },
  } as unknown as AuthorityServiceClient;
  const clock: Clock = {
    now: () => 0,
    monotonic: () => 0,
    after: (_ms, call) => {
      setImmediate(call);
      return { [Symbol.dispose]: () => undefined };
    },
  };
  const events: LinkEvents = {
    carried: () => [],
    onReconciled: (_endings, presentationsEnd) => ends.push(presentationsEnd),
    onLost: () => ends.push('lost'),
    onFence: (order) => {
      orders.push(order);
      return new Promise((resolve) => {
        inForce = resolve;
      });
    },
    onReattached: () => undefined,
  };
  const options = {
    client,
    clock,
    logger: createLogger('test', 'silent'),
    dataIncarnation: 'dn_1',
    endpoint: () => '127.0.0.1:1',
    reconnectMs: 1,
    batchQuestionsMax: 3,
    callersMax: 3,
  };
  link = new ResolveStream(options, events);
  link.open();
});

function question(): Question {
  return {
    operation: 'OBSERVE',
    caller: 1,
    workerRef: worker,
    expectedGeneration: generation(1n),
    presentation: 1n,
    replace: false,
  };
}

function asked(): { answers: Outcome<Grant>[]; lost: number[] } {
  const seen = { answers: [] as Outcome<Grant>[], lost: [] as number[] };
  link.ask(
    question(),
    (answer) => seen.answers.push(answer),
    () => seen.lost.push(1),
  );
  return seen;
}

const grantOf = (
  batch: bigint,
  authorityEpoch: bigint,
  count = 1,
): NonNullable<ResolveResponse['message']> => ({
  $case: 'answers',
  value: {
    batch,
    authorityEpoch,
    answers: Array.from({ length: count }, () => ({
      verdict: {
        $case: 'grant' as const,
        value: {
          actor: 'demo',
          locusRef: 'lc_1',
          workerGeneration: 1n,
          carrierRef: 'cr_1',
          carrierEpoch: 1n,
          attachmentRef: 'at_1',
          attachmentEpoch: 1n,
          ptyEpoch: 1n,
          peerRef: 'pr_1',
        },
      },
    })),
  },
});

test('the inventory is the first message, and callers are introduced again on every stream', async () => {
  introduced(1);
  const gone = introduced(2);
  link.farewell(gone);
  streams[0]?.emit('end');
  await turn();
  expect(streams[1]?.heard.map((said) => said.$case)).toEqual(['inventory', 'introduction']);
});

test('a certificate is introduced once, and its number is free with the last call that uses it', async () => {
  streams[0]?.reconciles();
  const first = introduced(1);
  const second = introduced(1);
  const other = introduced(2);
  expect({ second, isOther: other !== first }).toEqual({ second: first, isOther: true });
  link.farewell(first);
  const told = (): readonly string[] => streams[0]?.heard.map((said) => said.$case).slice(1) ?? [];
  expect(told()).toEqual(['introduction', 'introduction']);
  link.farewell(second);
  expect(told()).toEqual(['introduction', 'introduction', 'farewell']);
  expect(introduced(1)).not.toBe(first);
});

test('a caller that leaves in the turn in which it asked is taken leave of after its question', async () => {
  streams[0]?.reconciles();
  const caller = introduced(1);
  asked();
  link.farewell(caller);
  await turn();
  expect(streams[0]?.heard.map((said) => said.$case).slice(2)).toEqual(['batch', 'farewell']);
});

test('nothing is asked before the inventory was answered: AUTHORITY_UNREACHABLE at once', async () => {
  const { answers, lost } = asked();
  await turn();
  expect({ answers, lost: lost.length, batches: streams[0]?.batches() }).toEqual({
    answers: [],
    lost: 1,
    batches: [],
  });
  const reserved = await link.reserve({
    caller: 1,
    workerRef: worker,
    expectedGeneration: generation(1n),
  });
  expect(reserved).toMatchObject({ refusal: { reason: 'AUTHORITY_UNREACHABLE' } });
});

test('P6 what is asked in one turn travels together, and joins no batch that was already sent', async () => {
  streams[0]?.reconciles();
  asked();
  asked();
  await turn();
  asked();
  await turn();
  expect(streams[0]?.batches().map(({ questions }) => questions.length)).toEqual([2, 1]);
  expect(streams[0]?.batches()[0]?.questions[0]?.operation).toBe(Operation.OBSERVE);
});

test('a batch never exceeds what authority takes', async () => {
  streams[0]?.reconciles();
  for (let count = 0; count < 7; count += 1) {
    asked();
  }
  await turn();
  expect(streams[0]?.batches().map(({ questions }) => questions.length)).toEqual([3, 3, 1]);
});

test('answers reach their questions in order, refusals by name', async () => {
  streams[0]?.reconciles();
  const first = asked();
  const second = asked();
  await turn();
  const refusal = { request: 0n, reason: Reason.WORKER_CLOSED, facts: { worker: 'demo' } };
  const [grant] = (grantOf(1n, 9n) as Extract<ResolveResponse['message'], { $case: 'answers' }>)
    .value.answers;
  streams[0]?.says({
    $case: 'answers',
    value: {
      batch: 1n,
      authorityEpoch: 9n,
      answers: [grant!, { verdict: { $case: 'refused', value: refusal } }],
    },
  });
  expect(first.answers).toMatchObject([{ kind: 'granted', value: { authorityEpoch: 9n } }]);
  expect(second.answers).toMatchObject([{ kind: 'refused', refusal: { reason: 'WORKER_CLOSED' } }]);
});

test('P7 a fence is acknowledged when it is in force, not when it is heard', async () => {
  streams[0]?.reconciles();
  const value = {
    fence: 5n,
    workerRef: worker,
    authorityEpoch: 20n,
    scope: FenceScope.PRESENTATIONS,
    reason: CloseReason.WORKER_CLOSED,
  };
  streams[0]?.says({ $case: 'fence', value });
  await turn();
  expect(orders).toEqual([{ workerRef: worker, scope: 'PRESENTATIONS', reason: 'WORKER_CLOSED' }]);
  expect(streams[0]?.heard.some((said) => said.$case === 'fenceAck')).toBe(false);
  inForce();
  await turn();
  expect(streams[0]?.heard.at(-1)).toEqual({ $case: 'fenceAck', value: { fence: 5n } });
});

test('P7 a grant older than the highest fence of its worker is fenced, a newer one is not', async () => {
  streams[0]?.reconciles();
  const fence = (authorityEpoch: bigint): void =>
    streams[0]?.says({
      $case: 'fence',
      value: {
        fence: 1n,
        workerRef: worker,
        authorityEpoch,
        scope: FenceScope.PRESENTATIONS,
        reason: CloseReason.REPLACED,
      },
    });
  fence(20n);
  fence(12n);
  const { answers } = asked();
  asked();
  await turn();
  streams[0]?.says(grantOf(1n, 19n, 2));
  const [old] = answers;
  expect(old?.kind === 'granted' && link.isFenced(old.value)).toBe(true);
  const later = asked();
  await turn();
  streams[0]?.says(grantOf(2n, 20n));
  const [newer] = later.answers;
  expect(newer?.kind === 'granted' && link.isFenced(newer.value)).toBe(false);
});

test('a break loses what was asked, and an answer of the old stream says nothing on the new', async () => {
  streams[0]?.reconciles();
  const before = asked();
  await turn();
  streams[0]?.emit('end');
  expect(before.lost).toHaveLength(1);
  await turn();
  streams[0]?.says(grantOf(1n, 9n));
  streams[1]?.says(grantOf(1n, 9n));
  expect(before.answers).toEqual([]);
});

test('a new world ends presentations world-restarted, the same one authority-unreachable', async () => {
  streams[0]?.reconciles('wd_1');
  streams[0]?.emit('end');
  await turn();
  streams[1]?.reconciles('wd_1');
  streams[1]?.emit('end');
  await turn();
  streams[2]?.reconciles('wd_2');
  expect(ends).toEqual([
    'WORLD_RESTARTED',
    'lost',
    'AUTHORITY_UNREACHABLE',
    'lost',
    'WORLD_RESTARTED',
  ]);
});

test('a node that drains still tells what ends, and does not connect again', async () => {
  streams[0]?.reconciles();
  link.drain();
  void link.release(ref('at_1'));
  await turn();
  expect(streams[0]?.heard.at(-1)).toMatchObject({ $case: 'release' });
  streams[0]?.emit('end');
  await turn();
  await turn();
  expect(streams.length).toBe(1);
});

test('what authority keeps and this node no longer carries is given back', async () => {
  streams[0]?.says({
    $case: 'reconciled',
    value: {
      worldIncarnation: 'wd_1',
      worldGeneration: 1n,
      authorityEpoch: 1n,
      verdicts: [{ attachmentRef: 'at_gone', keep: true, reason: CloseReason.UNSPECIFIED }],
    },
  });
  await turn();
  expect(streams[0]?.heard.at(-1)).toMatchObject({
    $case: 'release',
    value: { attachmentRef: 'at_gone' },
  });
});

test('a grant of a stream that broke says nothing on the next, whatever its epoch', async () => {
  streams[0]?.reconciles();
  const { answers } = asked();
  await turn();
  streams[0]?.says(grantOf(1n, 900n));
  const [answer] = answers;
  const isFenced = (): boolean => answer?.kind === 'granted' && link.isFenced(answer.value);
  expect(isFenced()).toBe(false);
  streams[0]?.emit('end');
  await turn();
  streams[1]?.reconciles('wd_2');
  expect(isFenced()).toBe(true);
});

test('a fence of a scope that this build does not know ends everything', async () => {
  streams[0]?.reconciles();
  const value = {
    fence: 1n,
    workerRef: worker,
    authorityEpoch: 2n,
    scope: 99 as FenceScope,
    reason: CloseReason.WORKER_CLOSED,
  };
  streams[0]?.says({ $case: 'fence', value });
  await turn();
  expect(orders).toMatchObject([{ scope: 'POSSESSION' }]);
});

test('a release that authority refuses is not told as durable', async () => {
  streams[0]?.reconciles();
  const released = link.release(ref('at_1'));
  await turn();
  const refusal = { request: 0n, reason: Reason.JOURNAL_FULL, facts: {} };
  streams[0]?.says({
    $case: 'recorded',
    value: { request: 1n, authorityEpoch: 2n, refused: refusal },
  });
  expect(await released).toMatchObject({ refusal: { reason: 'JOURNAL_FULL' } });
});

test('a caller beyond those authority takes is refused PEERS_EXHAUSTED', () => {
  streams[0]?.reconciles();
  expect([1, 2, 3, 1].map((byte) => introduced(byte))).toEqual([1, 2, 3, 1]);
  expect(link.introduce(Uint8Array.of(4))).toMatchObject({
    refusal: { reason: 'PEERS_EXHAUSTED', facts: { callersMax: '3' } },
  });
});
