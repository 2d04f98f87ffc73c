/** What a data node may ask of authority, and what becomes of one that asks more: refused, cut off, and nobody else's loss. */
import { X509Certificate } from 'node:crypto';
import { readFileSync } from 'node:fs';
import type { ClientDuplexStream, ServiceError } from '@grpc/grpc-js';
import { describe, expect, test } from 'vitest';
import type { LoadedIdentity } from '#chassis/identity-files.js';
import { refusalOf } from '#chassis/refusal-status.js';
import { type AuthorityConnection, connect } from '#client/connect.js';
import {
  type Answer,
  Operation,
  Question,
  ResolveRequest,
  type ResolveResponse,
  type TailResponse,
} from '#gen/wheelhouse/authority/v1/authority.js';
import { CloseReason, Reason } from '#gen/wheelhouse/refusal/v1/refusal.js';
import { reasonName } from '#kernel/refusal.js';
import { eventually, within } from '../stack/eventually.js';
import { falsifier, type Subject } from '../stack/falsifier.js';
import type { Stack } from '../stack/stack.js';
import { mintIdentity, mintStranger } from '../stack/state-folder.js';
import { framed, nameOf, RawConnection } from './hostile-client.js';
import { echo, stillServes } from './hostile-room.js';
import { product, Room } from './room.js';

type Told = NonNullable<ResolveRequest['message']>;
type Heard = NonNullable<ResolveResponse['message']>;

/** A data node's hand on authority, which tells it whatever it likes. */
class NodeHand implements Disposable {
  readonly #connection: AuthorityConnection;
  readonly #call: ClientDuplexStream<ResolveRequest, ResolveResponse>;
  readonly heard: Heard[] = [];
  readonly #over: Promise<string>;
  #batch = 0n;

  constructor(stack: Stack, identity: LoadedIdentity) {
    this.#connection = connect(stack.endpoints.authority, 'authority', identity);
    this.#call = this.#connection.client.resolve();
    this.#over = new Promise((resolve) => {
      this.#call.on('end', () => resolve('ended'));
      this.#call.on('error', (error: ServiceError) => {
        const refusal = refusalOf(error);
        resolve(
          refusal === undefined
            ? `status ${error.code}`
            : `${refusal.reason} ${refusal.facts['field']}`,
        );
      });
    });
    this.#call.on('data', ({ message }: ResolveResponse) => message && this.heard.push(message));
  }

  tell(message: Told): void {
    this.#call.write({ message });
  }

  /** Says what it carries, and waits until it is served. */
  async begins(carried: Extract<Told, { $case: 'inventory' }>['value']['carried'] = []) {
    this.tell(inventory(carried));
    return await this.next('reconciled');
  }

  introduces(caller: number, { identity }: Pick<LoadedIdentity, 'identity'>): void {
    const certificate = Buffer.from(new X509Certificate(identity.certificatePem).raw);
    this.tell({ $case: 'introduction', value: { caller, certificate } });
  }

  async asks(...questions: readonly Parameters<typeof Question.fromPartial>[0][]) {
    this.#batch += 1n;
    const batch = this.#batch;
    this.tell({
      $case: 'batch',
      value: { batch, questions: questions.map((question) => Question.fromPartial(question)) },
    });
    const answers = await eventually('the answers', () =>
      this.heard.find((each) => each.$case === 'answers' && each.value.batch === batch),
    );
    return answers.$case === 'answers' ? answers.value.answers.map(verdictOf) : [];
  }

  async next<Case extends Heard['$case']>($case: Case): Promise<Extract<Heard, { $case: Case }>> {
    const found = await eventually($case, () => this.heard.find((each) => each.$case === $case));
    return found as Extract<Heard, { $case: Case }>;
  }

  /** How the stream ended. */
  async over(): Promise<string> {
    return await within('the stream is over', 10_000, this.#over);
  }

  [Symbol.dispose](): void {
    this.#call.cancel();
    this.#connection[Symbol.dispose]();
  }
}

function inventory(carried: Extract<Told, { $case: 'inventory' }>['value']['carried']): Told {
  return {
    $case: 'inventory',
    value: { dataIncarnation: 'dn_other', endpoint: '127.0.0.1:1', carried },
  };
}

function verdictOf({ verdict }: Answer): string {
  return verdict?.$case === 'refused' ? (reasonName(verdict.value.reason) ?? 'unknown') : 'granted';
}

const { PRESENT, OBSERVE, AGENT_INPUT, AGENT_RESIZE } = Operation;

/** The names authority has given, as one of the services learns them. */
async function facts(stack: Stack): Promise<readonly Record<string, string>[]> {
  const service = await stack.identityFor('service', 'control');
  using connection = connect(stack.endpoints.authority, 'authority', service);
  const call = connection.client.tail({ afterIndex: 0n });
  const bodies: Record<string, string>[] = [];
  call.on('error', () => undefined);
  call.on('data', ({ body }: TailResponse) => bodies.push(JSON.parse(body.toString())));
  await eventually('the facts', () => bodies.some((body) => 'attachmentRef' in body));
  call.cancel();
  return bodies;
}

/** A node asks about what another carries: it learns nothing, gets nothing and ends nothing. */
async function anotherNode(subject: Subject): Promise<void> {
  await using room = await Room.open(subject);
  await using run = await room.runs(echo);
  await run.shows(/ready/);
  const { stack, worker } = room;
  const operator = await stack.identityFor('human-control', 'operator');
  const [attachmentRef = ''] = (await facts(stack)).flatMap((fact) => fact['attachmentRef'] ?? []);
  expect(attachmentRef).toMatch(/^at_/);
  const named = { workerRef: worker.workerRef, expectedWorkerGeneration: worker.generation };

  using other = new NodeHand(
    stack,
    await mintIdentity(stack.stateDir, 'service', 'data', { node: 'other' }),
  );
  const claimed = {
    workerRef: worker.workerRef,
    workerGeneration: worker.generation,
    attachmentRef,
    attachmentEpoch: 1n,
    carrierEpoch: 1n,
  };
  const { value } = await other.begins([claimed]);
  expect(value.verdicts).toEqual([{ attachmentRef, keep: false, reason: CloseReason.OWNER_LOST }]);
  other.introduces(1, operator);
  other.introduces(2, run.bind.identity);
  expect(
    await other.asks(
      { operation: PRESENT, caller: 1, presentation: 1n, replace: true, ...named },
      { operation: OBSERVE, caller: 1, presentation: 1n, ...named },
      { operation: AGENT_INPUT, caller: 2, ...named },
      { operation: AGENT_RESIZE, caller: 2, ...named },
    ),
  ).toEqual(Array.from({ length: 4 }, () => 'NOT_CARRIED_HERE'));
  other.tell({ $case: 'reserve', value: { request: 1n, caller: 2, ...named } });
  const { value: admission } = await other.next('admission');
  expect(admission.verdict).toMatchObject({ value: { reason: Reason.NOT_CARRIED_HERE } });
  for (const $case of ['activate', 'release'] as const) {
    other.tell({ $case, value: { request: 2n, attachmentRef } });
  }
  other.tell({ $case: 'fenceAck', value: { fence: 1n } });
  other.tell({ $case: 'presentationEnded', value: { presentation: 1n } });
  await other.next('recorded');
  await stillServes(room, run);

  using second = new NodeHand(
    stack,
    await mintIdentity(stack.stateDir, 'service', 'data', { node: 'other' }),
  );
  await second.begins();
  expect(await other.over()).toBe('ended');
  second.introduces(1, operator);
  expect(await second.asks({ operation: OBSERVE, caller: 1, ...named })).toEqual([
    'NOT_CARRIED_HERE',
  ]);
  await stillServes(room, run);
}

/** Whoever a node speaks for, what counts is the certificate, and before it is looked at what was named. */
async function wrongCallers(subject: Subject): Promise<void> {
  await using room = await Room.open(subject);
  await using run = await room.runs(echo);
  await run.shows(/ready/);
  const { stack, worker } = room;
  using other = new NodeHand(
    stack,
    await mintIdentity(stack.stateDir, 'service', 'data', { node: 'other' }),
  );
  await other.begins();
  const { stateDir } = stack;
  const notAfterMs = Date.now() - 1_000;
  other.introduces(1, run.bind.identity);
  other.introduces(2, await stack.identityFor('human-control', 'operator'));
  other.introduces(3, await stack.identityFor('creator', 'someone'));
  other.introduces(4, await stack.identityFor('service', 'control'));
  other.introduces(5, await stack.identityFor('human-control', 'bob'));
  other.introduces(6, await mintIdentity(stateDir, 'human-control', 'late', { notAfterMs }));
  const there = { workerRef: worker.workerRef, expectedWorkerGeneration: worker.generation };
  const nowhere = { workerRef: `wk_${'0'.repeat(32)}`, expectedWorkerGeneration: 1n };
  for (const named of [there, nowhere]) {
    expect(
      await other.asks(
        ...[1, 3, 4].flatMap((caller) => [
          { operation: PRESENT, caller, presentation: 9n, ...named },
          { operation: OBSERVE, caller, presentation: 9n, ...named },
        ]),
      ),
    ).toEqual(Array.from({ length: 6 }, () => 'ROLE_NOT_HUMAN_CONTROL'));
    expect(
      await other.asks(
        ...[2, 3, 4].flatMap((caller) => [
          { operation: AGENT_INPUT, caller, ...named },
          { operation: AGENT_RESIZE, caller, ...named },
        ]),
      ),
    ).toEqual(Array.from({ length: 6 }, () => 'ROLE_NOT_AGENT'));
    expect(
      await other.asks(
        { operation: OBSERVE, caller: 5, ...named },
        { operation: OBSERVE, caller: 6, ...named },
        { operation: 99 as typeof OBSERVE, caller: 2, ...named },
        { operation: Operation.UNSPECIFIED, caller: 2, ...named },
      ),
    ).toEqual([
      'CONTROL_CHANNEL_NOT_BOUND',
      'CERTIFICATE_EXPIRED',
      'REQUEST_INVALID',
      'REQUEST_INVALID',
    ]);
  }
  await stillServes(room, run);
}

/** Each breaks the rules of the stream in its own way, and is told which. */
async function misused(subject: Subject): Promise<void> {
  await using room = await Room.open(subject, {
    authority: { WHEELHOUSE_CALLERS_PER_NODE_MAX: '64' },
  });
  await using run = await room.runs(echo);
  await run.shows(/ready/);
  const { stack } = room;
  const other = await mintIdentity(stack.stateDir, 'service', 'data', { node: 'other' });
  const operator = await stack.identityFor('human-control', 'operator');
  const stranger = await mintStranger(stack.stateDir, 'human-control', 'operator');
  const root = readFileSync(`${stack.stateDir}/ca/root.crt`, 'utf8');
  const batch = (number: bigint, count: number, caller: number): Told => {
    const questions = Array.from({ length: count }, () => Question.fromPartial({ caller }));
    return { $case: 'batch', value: { batch: number, questions } };
  };
  const breaking = async (act: (hand: NodeHand) => void, isBegun = true): Promise<string> => {
    using hand = new NodeHand(stack, other);
    if (isBegun) {
      await hand.begins();
    }
    act(hand);
    return await hand.over();
  };
  const incarnation = (dataIncarnation: string, endpoint = ''): Told => {
    return { $case: 'inventory', value: { dataIncarnation, endpoint, carried: [] } };
  };
  expect(await breaking((hand) => hand.tell(batch(1n, 1, 1)), false)).toBe(
    'REQUEST_INVALID message',
  );
  expect(await breaking((hand) => hand.introduces(1, operator), false)).toBe(
    'REQUEST_INVALID message',
  );
  expect(await breaking((hand) => hand.tell(incarnation('')), false)).toBe(
    'REQUEST_INVALID inventory',
  );
  expect(await breaking((hand) => hand.tell(incarnation('x'.repeat(257))), false)).toBe(
    'REQUEST_INVALID inventory',
  );
  expect(await breaking((hand) => hand.tell(incarnation('x', 'y'.repeat(257))), false)).toBe(
    'REQUEST_INVALID inventory',
  );
  expect(await breaking((hand) => hand.tell(incarnation('again')))).toBe('REQUEST_INVALID message');
  expect(await breaking((hand) => hand.tell(batch(1n, 1, 1)))).toBe('REQUEST_INVALID caller');
  expect(await breaking((hand) => hand.tell(batch(0n, 0, 1)))).toBe('REQUEST_INVALID batch');
  expect(await breaking((hand) => [1n, 1n].map((number) => hand.tell(batch(number, 0, 1))))).toBe(
    'REQUEST_INVALID batch',
  );
  expect(await breaking((hand) => hand.tell(batch(1n, 4_097, 1)))).toBe(
    'REQUEST_INVALID questions',
  );
  expect(await breaking((hand) => [1, 1].map((caller) => hand.introduces(caller, operator)))).toBe(
    'REQUEST_INVALID caller',
  );
  expect(await breaking((hand) => hand.introduces(1, stranger))).toBe(
    'REQUEST_INVALID certificate',
  );
  expect(
    await breaking((hand) =>
      hand.introduces(1, { identity: { certificatePem: root, keyPem: '' } }),
    ),
  ).toBe('REQUEST_INVALID certificate');
  const junk = Buffer.from('no certificate');
  expect(
    await breaking((hand) =>
      hand.tell({ $case: 'introduction', value: { caller: 1, certificate: junk } }),
    ),
  ).toBe('REQUEST_INVALID certificate');
  const reserve = { request: 1n, caller: 1, workerRef: '', expectedWorkerGeneration: 0n };
  expect(await breaking((hand) => hand.tell({ $case: 'reserve', value: reserve }))).toBe(
    'REQUEST_INVALID caller',
  );
  const many = (hand: NodeHand): void => {
    for (let caller = 1; caller <= 65; caller += 1) {
      hand.introduces(caller, operator);
    }
  };
  expect(await breaking(many)).toBe('REQUEST_INVALID caller');
  const tooLong = Question.fromPartial({ caller: 1, workerRef: 'x'.repeat(600_000) });
  expect(
    await breaking((hand) =>
      hand.tell({ $case: 'batch', value: { batch: 1n, questions: [tooLong] } }),
    ),
  ).toBe('status 8');

  // A message of a newer node, which decodes as none.
  using raw = await RawConnection.open(stack.endpoints.authority, other);
  const call = raw.call('/wheelhouse.authority.v1.AuthorityService/Resolve');
  const first = ResolveRequest.encode({ message: incarnation('dn_x') }).finish();
  call.sendBytes(Buffer.concat([framed(first), framed(Buffer.from([0xa2, 0x06, 0x00]))]));
  expect(nameOf(await call.ended())).toBe('REQUEST_INVALID');
  await stillServes(room, run);
}

describe('a data node beyond its rights', () => {
  test('not-carried-here: another node’s workers are not to be asked about, taken or ended', () =>
    anotherNode(product));
  falsifier(
    'not-carried-here',
    {
      file: 'services/authority/domain/resolve.ts',
      // The operator's chain; the agent's has its own look further down.
      find: /if \(worker\.node !== node\) \{(?=[\s\S]*followOccupant\(state, worker, peer)/,
      replace: 'if (false) {',
    },
    anotherNode,
  );
  test('role-not-human-control: a question is answered for whose certificate it names', () =>
    wrongCallers(product));
  test('what breaks the rules of the stream ends it by name', () => misused(product));
});
