/**
 * The falsifiers that the specification of presentations asks for, on real processes, and for each a
 * product without the check, against which it must fail.
 */
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import type { ServiceError } from '@grpc/grpc-js';
import { makeGenericClientConstructor } from '@grpc/grpc-js';
import { describe, expect, test } from 'vitest';
import { clientCredentials, clientOptions } from '#chassis/grpc-client.js';
import { refusalOf } from '#chassis/refusal-status.js';
import { RefusedError } from '#client/call-errors.js';
import { connect } from '#client/connect.js';
import { Presentation } from '#client/presentation.js';
import { DataServiceService, PresentResponse } from '#gen/wheelhouse/data/v1/data.js';
import { eventually, within } from '../stack/eventually.js';
import { falsifier, type Subject } from '../stack/falsifier.js';
import type { Stack } from '../stack/stack.js';
import { ownDist } from '../stack/stack-home.js';
import { startStack } from '../stack/start-stack.js';
import { AgentRun, boundAgent, Operator, raw } from './actors.js';

const product: Subject = { distDir: ownDist };

/** The name a call is refused by; what is granted or breaks has none. */
async function refusalFrom(call: Promise<unknown>): Promise<string> {
  const outcome = await call.then(
    () => 'granted',
    (error: unknown) => (error instanceof RefusedError ? error.refusal.reason : String(error)),
  );
  return outcome;
}

async function foreignWorker({ distDir }: Subject): Promise<void> {
  await using stack = await startStack({ distDir });
  const identity = await (async () => {
    await using alice = await Operator.at(stack, 'alice');
    const worker = await alice.opens('demo');
    return { worker, agent: await alice.identityOf('demo') };
  })();
  await using run = await AgentRun.starts(stack, identity.agent, identity.worker, raw('cat'));
  await using bob = await Operator.at(stack, 'bob');
  expect(await refusalFrom(bob.looksAt(identity.worker))).toBe('WORKER_NOT_OPENED_BY_CALLER');
  expect(run.received.bytes).toBe(0n);
}

async function agentNamesAny({ distDir }: Subject): Promise<void> {
  await using stack = await startStack({ distDir });
  await using operator = await Operator.at(stack);
  const worker = await operator.opens('demo');
  const agent = await operator.identityOf('demo');
  await using run = await AgentRun.starts(stack, agent, worker, raw('cat'));
  const asAgent = connect(stack.endpoints.data, 'data', run.bind.identity);
  const take = (): void => undefined;
  const unknown = { workerRef: 'wk_00000000000000000000000000000000', generation: 1n };
  for (const named of [worker, unknown]) {
    const look = Presentation.open(asAgent, { worker: named }, { take });
    expect(await refusalFrom(look)).toBe('ROLE_NOT_HUMAN_CONTROL');
  }
  asAgent[Symbol.dispose]();
}

async function advancedGeneration({ distDir }: Subject): Promise<void> {
  await using stack = await startStack({ distDir });
  await using operator = await Operator.at(stack);
  const seen = await operator.opens('demo');
  await operator.workers.close(seen);
  const reopened = await operator.workers.reopen(seen);
  const now = { workerRef: reopened.workerRef, generation: reopened.workerGeneration };
  const agent = await operator.identityOf('demo');
  await using run = await AgentRun.starts(stack, agent, now, raw('echo secret; cat'));
  await run.shows(/secret/);
  expect(await refusalFrom(operator.looksAt(seen))).toBe('WORKER_GENERATION_ADVANCED');
}

async function emptyWorker({ distDir }: Subject): Promise<void> {
  await using stack = await startStack({ distDir });
  await using operator = await Operator.at(stack);
  const worker = await operator.opens('demo');
  expect(await refusalFrom(operator.looksAt(worker))).toBe('LOCUS_NOT_OCCUPIED');
  using seated = await boundAgent(stack, await operator.identityOf('demo'));
  const { Workers } = await import('#client/workers.js');
  await new Workers(seated.authority).occupy(worker);
  expect(await refusalFrom(operator.looksAt(worker))).toBe('CARRIER_NOT_ATTACHED');
}

async function occupantChanges({ distDir }: Subject): Promise<void> {
  await using stack = await startStack({ distDir });
  await using operator = await Operator.at(stack);
  const worker = await operator.opens('demo');
  const agent = await operator.identityOf('demo');
  const first = await AgentRun.starts(stack, agent, worker, raw('echo first; cat'));
  const look = await operator.looksAt(worker);
  await first[Symbol.asyncDispose]();
  const end = await within('the look ends', 10_000, look.ended);
  expect(
    end.kind === 'closed' && ['AGENT_UNBOUND', 'RELEASED', 'OCCUPANT_CHANGED'].includes(end.reason),
  ).toBe(true);
  await using second = await eventually('another agent sits there', () =>
    AgentRun.starts(stack, agent, worker, raw('echo second; cat')),
  );
  await second.shows(/second/);
  expect(look.received.text).not.toContain('second');
}

async function closingCloses({ distDir }: Subject): Promise<void> {
  await using stack = await startStack({ distDir });
  await using operator = await Operator.at(stack);
  const worker = await operator.opens('demo');
  const agent = await operator.identityOf('demo');
  await using run = await AgentRun.starts(stack, agent, worker, raw('echo ready; cat'));
  const look = await operator.looksAt(worker);
  const order: string[] = [];
  const looked = look.ended.then((end) => order.push('presentation') && end);
  const possessed = run.ended.then((end) => order.push('possession') && end);
  const closing = await operator.workers.close(worker);
  const [lookEnd, runEnd] = await within('both end', 10_000, Promise.all([looked, possessed]));
  expect(closing.isFenced).toBe(true);
  expect(lookEnd).toMatchObject({ kind: 'closed', reason: 'WORKER_CLOSED' });
  expect(runEnd).toMatchObject({ kind: 'closed', reason: 'WORKER_CLOSED' });
  expect(order).toEqual(['presentation', 'possession']);
}

async function detachingLeaves({ distDir }: Subject): Promise<void> {
  await using stack = await startStack({ distDir });
  await using operator = await Operator.at(stack);
  const worker = await operator.opens('demo');
  const agent = await operator.identityOf('demo');
  await using run = await AgentRun.starts(stack, agent, worker, raw('echo ready; cat'));
  await run.shows(/ready/);
  const look = await operator.looksAt(worker);
  await look.presentation.detach();
  await within('the agent types on', 10_000, run.possession.write(Buffer.from('still here\n')));
  await run.shows(/still here/);
  const [listed] = await operator.workers.list();
  expect(listed?.state).toBe(2);
}

/** Everything that crosses to a page, as bytes, against every name and number it must not hold. */
async function payloadNamesNothing({ distDir }: Subject): Promise<void> {
  await using stack = await startStack({ distDir });
  await using operator = await Operator.at(stack);
  const worker = await operator.opens('demo');
  const agent = await operator.identityOf('demo');
  await using run = await AgentRun.starts(
    stack,
    agent,
    worker,
    raw('read line; echo "$line"; exit 0'),
  );
  const identity = await stack.identityFor('human-control', 'operator');
  const messages = capturePresent(stack, identity, worker);
  await eventually('the look is open', () => messages.received.length > 0);
  await run.possession.write(Buffer.from('hello\n'));
  await within('the look ends', 10_000, messages.ended);
  const bytes = Buffer.concat(messages.received).toString('latin1');
  expect(bytes).toContain('hello');
  const refs = refsInJournal(stack);
  expect(refs.size).toBeGreaterThan(4);
  for (const ref of refs) {
    expect(bytes).not.toContain(ref);
  }
  // Unknown fields are kept by nobody: what the decoder knows is all there is.
  for (const message of messages.received) {
    const { event } = PresentResponse.decode(message);
    expect(Buffer.from(PresentResponse.encode({ event }).finish()).equals(message)).toBe(true);
  }
}

/** A raw client that keeps messages as they came. */
function capturePresent(
  stack: Stack,
  { identity, rootPem }: { identity: { certificatePem: string; keyPem: string }; rootPem: string },
  worker: { readonly workerRef: string; readonly generation: bigint },
): { received: Buffer[]; ended: Promise<void> } {
  const RawClient = makeGenericClientConstructor(
    {
      present: {
        ...DataServiceService.present,
        responseDeserialize: (bytes: Buffer) => Buffer.from(bytes),
      },
    },
    'raw',
  );
  const credentials = clientCredentials(identity, rootPem, { plane: 'data' });
  const client = new RawClient(stack.endpoints.data, credentials, clientOptions);
  const call = client['present']!();
  const received: Buffer[] = [];
  call.on('data', (message: Buffer) => {
    received.push(message);
    const { event } = PresentResponse.decode(message);
    if (event?.$case === 'output') {
      const nextSeq = event.value.seq + BigInt(event.value.payload.length);
      call.write({ operation: { $case: 'ack', value: { nextSeq } } });
    }
  });
  const ended = new Promise<void>((resolve, reject) => {
    call.on('end', () => resolve());
    call.on('error', (error: ServiceError) =>
      reject(new Error(refusalOf(error)?.reason ?? error.message)),
    );
  }).finally(() => client.close());
  call.write({
    operation: {
      $case: 'open',
      value: {
        workerRef: worker.workerRef,
        expectedWorkerGeneration: worker.generation,
        windowBytes: 0,
        replace: false,
      },
    },
  });
  return { received, ended };
}

/** Every name authority has given, but for the worker's own, which a page may know. */
function refsInJournal(stack: Stack): Set<string> {
  const files = filesUnder(stack.stateDir).filter((file) => /journal\.sqlite/.test(file));
  const text = files.map((file) => readFileSync(file, 'latin1')).join('');
  const refs = text.match(/\b(pr|at|cr|lc|dn|wd|in)_[0-9a-f]{32}\b/g) ?? [];
  return new Set(refs);
}

function filesUnder(folder: string): string[] {
  return readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .map((name) => join(folder, name))
    .filter((path) => statSync(path).isFile());
}

/** Reads the stores themselves: a look leaves them, and every log, as they were. */
async function nothingDurable({ distDir }: Subject): Promise<void> {
  await using stack = await startStack({ distDir });
  const before = await (async () => {
    await using operator = await Operator.at(stack);
    const worker = await operator.opens('demo');
    const agent = await operator.identityOf('demo');
    const run = await AgentRun.starts(stack, agent, worker, raw('echo ready; cat'));
    await run.shows(/ready/);
    const rows = journalRows(stack);
    const logs = stack.log('data') + stack.log('authority');
    const look = await operator.looksAt(worker);
    await run.possession.write(Buffer.from('look\n'));
    await look.shows(/look/);
    await look.presentation.detach();
    expect(journalRows(stack)).toEqual(rows);
    expect((stack.log('data') + stack.log('authority')).length).toBe(logs.length);
    const second = await operator.looksAt(worker, { replace: true });
    await stack.crash('data');
    await stack.crash('authority');
    await second.ended;
    await run[Symbol.asyncDispose]();
    return worker;
  })();
  const everything = filesUnder(stack.stateDir)
    .map((file) => readFileSync(file, 'latin1'))
    .join('');
  expect(everything).not.toMatch(/presentation|presented|observ/i);
  await stack.restart('authority');
  await stack.restart('data');
  await using operator = await Operator.at(stack);
  await eventually('the worker is vacant', async () => {
    const [listed] = await operator.workers.list();
    return listed?.workerRef === before.workerRef && listed.state === 1;
  });
}

function journalRows(stack: Stack): unknown[] {
  const [file] = filesUnder(stack.stateDir).filter((path) => path.endsWith('journal.sqlite'));
  // Its holder locks it for life: what is read is a copy of its bytes.
  return [file, `${file}-wal`].map((path) => readFileSync(path ?? '', 'latin1').length);
}

describe('the specification’s falsifiers for presentations', () => {
  test('an operator that names a worker it did not open is refused', () => foreignWorker(product));
  falsifier(
    'P4 opened by caller',
    {
      file: 'services/authority/domain/resolve.ts',
      find: 'worker.openedBy !== asker.name',
      replace: 'false',
    },
    foreignWorker,
  );

  test('an agent that names any worker is refused, whether or not it exists', () =>
    agentNamesAny(product));
  falsifier(
    'P3 human-control only',
    [
      {
        file: 'services/chassis/grpc-server.ts',
        find: 'ROLE_OF[channel] === caller.role',
        replace: 'true',
      },
      {
        file: 'services/authority/domain/resolve.ts',
        find: "asker.role !== 'human-control'",
        replace: 'false',
      },
    ],
    agentNamesAny,
  );

  test('a generation that has advanced is refused by name', () => advancedGeneration(product));
  falsifier(
    'P2 generation',
    {
      file: 'services/authority/domain/resolve.ts',
      find: 'worker.workerGeneration !== designation.expectedGeneration',
      replace: 'false',
    },
    advancedGeneration,
  );

  test('an open worker that nothing occupies is refused, not shown empty', () =>
    emptyWorker(product));
  falsifier(
    'P2 occupancy',
    {
      file: 'services/authority/domain/resolve.ts',
      find: "refused('LOCUS_NOT_OCCUPIED'",
      replace: "refused('OWNER_UNREACHABLE'",
    },
    emptyWorker,
  );

  test('the occupant changing closes the presentation', () => occupantChanges(product));
  test('closing the worker closes the presentation and the possession, in that order', () =>
    closingCloses(product));
  test('closing the presentation leaves the possession and its agent at work', () =>
    detachingLeaves(product));
  falsifier(
    'P8 a look is no owner',
    {
      file: 'services/data/carrier.ts',
      find: 'this.#leaving.add(presenter);',
      replace: "this.#leaving.add(presenter); this.#possessor.end('RELEASED');",
    },
    detachingLeaves,
  );
  test('no peer, attachment, carrier, epoch or descriptor crosses to the page', () =>
    payloadNamesNothing(product));
  falsifier(
    'P1 nothing but the worker',
    {
      file: 'services/data/rpc/presenter.ts',
      find: "stream.send({ event: { $case: 'opened', value } });",
      replace: `stream.send({ event: { $case: 'opened', value } });
        stream.send({ event: { $case: 'refused', value: { request: 0n, reason: 21,
          facts: { of: this.#parts.holder.basis.attachmentRef } } } });`,
    },
    payloadNamesNothing,
  );
  test('a presentation is in no store, and a restart finds nothing', () => nothingDurable(product));
  falsifier(
    'P9 no trace',
    {
      file: 'services/data/rpc/present.ts',
      find: 'this.#presenter = carrier.present({',
      replace: "this.#node.logger.info('a look began'); this.#presenter = carrier.present({",
    },
    nothingDurable,
  );
});
