/** Authority from the outside: what its clients see, over real connections. */
import { readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import type { ServiceError } from '@grpc/grpc-js';
import { describe, expect, test } from 'vitest';
import { requestCertificate } from '#chassis/certificates.js';
import { randomNames } from '#chassis/random-names.js';
import {
  FenceScope,
  Fencing,
  Operation,
  WorkerState,
} from '#gen/wheelhouse/authority/v1/authority.js';
import { CloseReason } from '#gen/wheelhouse/refusal/v1/refusal.js';
import { decodeEvent } from '../../services/authority/adapters/event-rows.js';
import { Journal } from '../../services/authority/adapters/journal.js';
import type { StoredFact } from '../../services/authority/domain/deciding.js';
import { StartRefused } from '../../services/authority/start.js';
import type { Player } from './authority-stage.js';
import { Bound, designationOf, endedBy, question, Stage } from './authority-stage.js';

/** The name a call is refused by. */
async function refusalOf(call: Promise<unknown>): Promise<string> {
  return call.then(
    () => 'granted',
    (error: unknown) => (error instanceof Error ? error.message : String(error)),
  );
}

const presentationsFence = (reason: CloseReason) => `${FenceScope.PRESENTATIONS} ${reason}`;
const possessionFence = (reason: CloseReason) => `${FenceScope.POSSESSION} ${reason}`;

/** Ada and her worker, its agent at work in a terminal, everything bound. */
async function atWork(stage: Stage) {
  const node = await stage.node();
  await node.reconciled();
  const ada = await stage.operator();
  const adaBind = await ada.bind();
  const worker = await ada.open();
  const agent = await stage.agent();
  const agentBind = await agent.bind();
  await agent.occupy(worker);
  const operator = node.introduce(ada);
  const run = node.introduce(agent);
  const attachmentRef = await node.possess(run, worker);
  const carried = [
    {
      workerRef: worker.workerRef,
      workerGeneration: worker.workerGeneration,
      attachmentRef,
      attachmentEpoch: 1n,
      carrierEpoch: 1n,
    },
  ];
  return { node, ada, adaBind, worker, agent, agentBind, operator, run, attachmentRef, carried };
}

describe('bind', () => {
  test('the same certificate joins; another is refused until the last stream has gone', async () => {
    await using stage = await Stage.open();
    const ada = await stage.operator('ada');
    const first = await ada.bind();
    const second = await (await stage.operator('ada', ada.identity)).bind();
    const bob = await stage.operator('bob');
    expect(await refusalOf(bob.bind())).toBe('CONTROL_CHANNEL_OCCUPIED');
    await first.leave();
    expect(await refusalOf(bob.bind())).toBe('CONTROL_CHANNEL_OCCUPIED');
    await second.leave();
    expect(await refusalOf(bob.bind())).toBe('granted');
  });

  test('a renewed certificate joins the living peer, and takes over from it after a restart', async () => {
    await using stage = await Stage.open();
    const ada = await stage.operator('ada');
    const bind = await ada.bind();
    const renewed = await stage.operator('ada', await bind.renew());
    const joined = await renewed.bind();
    await bind.leave();
    const worker = await renewed.open();
    expect(await refusalOf(ada.list())).toBe('granted');
    await stage.crash();
    expect(await joined.ended).toMatch(/status/);
    const back = await stage.operator('ada', renewed.identity);
    await back.bind();
    const older = await stage.operator('ada', ada.identity);
    expect((await older.list()).map(({ name }) => name)).toEqual([worker.name]);
  });

  test('a renewal of anything but a proven P-256 key is refused, and the bind goes on', async () => {
    await using stage = await Stage.open();
    const ada = await stage.operator('ada');
    const bind = await ada.bind();
    expect(await refusalOf(bind.renew(Buffer.from('nonsense')))).toBe(
      'CERTIFICATE_REQUEST_INVALID',
    );
    expect(await refusalOf(bind.renew())).toBe('granted');
  });

  test('a renewal too many is refused for a quarter of a life, and the bind goes on', async () => {
    await using stage = await Stage.open({ runCertificateLifeMs: 60 * 60_000 });
    const agent = await stage.agent();
    const binds = [await agent.bind(), await agent.bind()] as const;
    const { request } = await requestCertificate();
    const again = Buffer.from(request);
    for (let count = 0; count < 16; count += 1) {
      await binds[count % 2 === 0 ? 0 : 1].renew(again);
    }
    expect(await refusalOf(binds[0].renew(again))).toBe('REQUEST_INVALID');
    stage.clock.advance(15 * 60_000);
    expect(await refusalOf(binds[0].renew(again))).toBe('granted');
  });

  test('an operation of another contract ends the stream', async () => {
    await using stage = await Stage.open();
    const ada = await stage.operator('ada');
    const call = ada.client.bind();
    const ended = new Promise((resolve) => call.on('error', resolve));
    call.on('data', () => call.write({ operation: undefined }));
    expect(String(await ended)).toContain('field');
  });

  test('a peer ends when its newest certificate does, by name', async () => {
    await using stage = await Stage.open();
    const identity = await stage.mint({ role: 'human-control', name: 'ada', lifeMs: 600_000 });
    const ada = await stage.operator('ada', identity);
    const bind = await ada.bind();
    await ada.open();
    stage.clock.advance(600_000);
    expect(await bind.ended).toBe('CERTIFICATE_EXPIRED');
    expect(await refusalOf(ada.list())).toBe('CERTIFICATE_EXPIRED');
    const bob = await stage.operator('bob');
    expect(await refusalOf(bob.bind())).toBe('granted');
  });

  test('a peer with a renewed certificate outlives its first one', async () => {
    await using stage = await Stage.open();
    const identity = await stage.mint({ role: 'human-control', name: 'ada', lifeMs: 600_000 });
    const ada = await stage.operator('ada', identity);
    const bind = await ada.bind();
    const renewed = await stage.operator('ada', await bind.renew());
    stage.clock.advance(600_000);
    expect(await refusalOf(renewed.list())).toBe('granted');
  });

  test('everything an operator may ask needs a living Bind, and so does what an agent may', async () => {
    await using stage = await Stage.open();
    const node = await stage.node();
    await node.reconciled();
    const ada = await stage.operator();
    const bind = await ada.bind();
    const worker = await ada.open();
    await bind.leave();
    for (const call of [
      () => ada.open({ name: 'other' }),
      () => ada.close(worker),
      () => ada.reopen(worker),
      () => ada.list(),
      () => ada.issueIdentity('demo'),
    ]) {
      expect(await refusalOf(call())).toBe('CONTROL_CHANNEL_NOT_BOUND');
    }
    const agent = await stage.agent();
    expect(await refusalOf(agent.occupy(worker))).toBe('AGENT_CHANNEL_NOT_BOUND');
    expect(await refusalOf(agent.list())).toBe('AGENT_CHANNEL_NOT_BOUND');
    expect(await refusalOf(agent.issueRun())).toBe('granted');
  });
});

describe('workers', () => {
  test('opened, closed, reopened by name and generation', async () => {
    await using stage = await Stage.open();
    const ada = await stage.operator();
    await ada.bind();
    const worker = await ada.open({ driveAllowed: true });
    expect(worker).toMatchObject({
      name: 'demo',
      actor: 'demo',
      openedBy: 'ada',
      workspace: '/work',
      workerGeneration: 1n,
      state: WorkerState.VACANT,
      driveAllowed: true,
      dataNode: 'local',
      dataEndpoint: '',
    });
    expect(await refusalOf(ada.open())).toBe('WORKER_NAME_TAKEN');
    expect(await refusalOf(ada.open({ name: 'no way' }))).toBe('REQUEST_INVALID');
    expect(await ada.close(worker)).toMatchObject({
      fencing: Fencing.FENCED,
      worker: { state: WorkerState.CLOSED },
    });
    expect(await refusalOf(ada.close(worker))).toBe('WORKER_CLOSED');
    const reopened = await ada.reopen(worker);
    expect(reopened.workerGeneration).toBe(2n);
    expect(await refusalOf(ada.reopen(worker))).toBe('WORKER_NOT_CLOSED');
    expect(await refusalOf(ada.close(worker))).toBe('WORKER_GENERATION_ADVANCED');
    expect(await refusalOf(ada.close({ ...worker, workerRef: 'wk_0' }))).toBe('WORKER_UNKNOWN');
  });

  test('an agent sees its own, without who opened them', async () => {
    await using stage = await Stage.open();
    const { ada, agent, worker, node, operator } = await atWork(stage);
    await ada.open({ name: 'other' });
    expect(await node.present(operator, worker)).toBe('granted');
    const [own, ...others] = await agent.list();
    expect(others).toEqual([]);
    expect(own).toMatchObject({ name: 'demo', openedBy: '', state: WorkerState.RUNNING });
    expect((await ada.list()).map(({ name, state }) => [name, state])).toEqual([
      ['demo', WorkerState.WATCHED],
      ['other', WorkerState.VACANT],
    ]);
  });

  test('identities are issued for actors of one’s own workers only', async () => {
    await using stage = await Stage.open();
    const ada = await stage.operator();
    const bind = await ada.bind();
    await ada.open();
    expect(await refusalOf(ada.issueIdentity('other'))).toBe('ACTOR_WITHOUT_WORKER');
    const demo = await stage.agent('demo', await ada.issueIdentity('demo'));
    const run = await stage.agent('demo', await demo.issueRun());
    expect(await refusalOf(run.bind())).toBe('granted');
    expect(await refusalOf(demo.issueRun(Buffer.from('nonsense')))).toBe(
      'CERTIFICATE_REQUEST_INVALID',
    );
    await bind.leave();
    const bob = await stage.operator('bob');
    await bob.bind();
    expect(await refusalOf(bob.issueIdentity('demo'))).toBe('ACTOR_WITHOUT_WORKER');
    expect(await refusalOf(bob.open({ name: 'his', actor: 'demo' }))).toBe('ACTOR_NOT_YOURS');
  });

  test('roles are kept apart at the door', async () => {
    await using stage = await Stage.open();
    const agent = await stage.agent();
    const ada = await stage.operator();
    const worker = { workerRef: 'wk_0', workerGeneration: 1n } as never;
    expect(await refusalOf(agent.open())).toBe('ROLE_NOT_HUMAN_CONTROL');
    expect(await refusalOf(ada.occupy(worker))).toBe('ROLE_NOT_AGENT');
    for (const name of ['control', 'data']) {
      const call = stage.dial(await stage.mint({ role: 'service', name })).resolve();
      const ended = new Promise<string>((resolve) => {
        call.on('error', (error: ServiceError) => resolve(endedBy(error)));
      });
      expect(await ended).toBe('ROLE_NOT_SERVICE');
    }
  });
});

describe('a terminal', () => {
  test('is admitted for the occupant, looked at by the operator, and used by the agent', async () => {
    await using stage = await Stage.open();
    const { node, worker, operator, run, attachmentRef } = await atWork(stage);
    expect(await node.present(operator, worker)).toBe('granted');
    expect(
      await node.ask(
        question(operator, worker),
        question(run, worker, { operation: Operation.AGENT_INPUT }),
        question(run, worker, { operation: Operation.AGENT_RESIZE }),
        question(run, worker),
        question(operator, worker, { operation: Operation.AGENT_INPUT }),
        question(operator, worker, { operation: 99 as never }),
      ),
    ).toEqual([
      'granted',
      'granted',
      'granted',
      'ROLE_NOT_HUMAN_CONTROL',
      'ROLE_NOT_AGENT',
      'REQUEST_INVALID',
    ]);
    const [answer] = await node.answers(question(operator, worker));
    expect(answer?.verdict).toMatchObject({
      $case: 'grant',
      value: { actor: 'demo', attachmentRef, attachmentEpoch: 1n, carrierEpoch: 1n, ptyEpoch: 1n },
    });
  });

  test('a second one for the same occupant is refused', async () => {
    await using stage = await Stage.open();
    const { node, worker, run } = await atWork(stage);
    expect(await refusalOf(node.possess(run, worker))).toBe('CARRIER_ALREADY_ATTACHED');
  });

  test('seats are kept: another run is refused, another actor finds nothing', async () => {
    await using stage = await Stage.open();
    const { worker } = await atWork(stage);
    const again = await stage.agent('demo');
    await again.bind();
    expect(await refusalOf(again.occupy(worker))).toBe('LOCUS_OCCUPIED');
    const stranger = await stage.agent('stranger');
    await stranger.bind();
    expect(await refusalOf(stranger.occupy(worker))).toBe('WORKER_NOT_YOURS');
    expect(await refusalOf(stranger.occupy({ ...worker, workerRef: 'wk_0' }))).toBe(
      'WORKER_NOT_YOURS',
    );
  });

  test('a seat is not given while the node is away', async () => {
    await using stage = await Stage.open();
    const ada = await stage.operator();
    await ada.bind();
    const worker = await ada.open();
    const agent = await stage.agent();
    await agent.bind();
    expect(await refusalOf(agent.occupy(worker))).toBe('OWNER_UNREACHABLE');
  });

  test('one that is gone cannot be activated, and is released twice in vain', async () => {
    await using stage = await Stage.open();
    const { node, attachmentRef } = await atWork(stage);
    expect((await node.release(attachmentRef)).refused).toBeUndefined();
    expect((await node.release(attachmentRef)).refused).toBeUndefined();
    expect((await node.activate(attachmentRef)).refused).toBeDefined();
  });

  test('a release ends the look at it', async () => {
    await using stage = await Stage.open();
    const { node, worker, operator, attachmentRef } = await atWork(stage);
    await node.present(operator, worker);
    await node.release(attachmentRef);
    await node.first('fence');
    expect(node.fences()).toEqual([presentationsFence(CloseReason.RELEASED)]);
    expect(await node.observe(operator, worker)).toBe('CARRIER_NOT_ATTACHED');
  });
});

describe('P10: one look', () => {
  test('replaced: the fence of the older leaves before the answer that grants the newer', async () => {
    await using stage = await Stage.open();
    const { node, worker, operator } = await atWork(stage);
    await node.present(operator, worker);
    expect(await node.present(operator, worker, { presentation: 2n })).toBe('PRESENTATION_EXISTS');
    const present = { operation: Operation.PRESENT, presentation: 2n, replace: true };
    const answers = await node.batch(
      question(operator, worker, { presentation: 1n }),
      question(operator, worker, present),
      question(operator, worker, { presentation: 2n }),
    );
    const verdicts = answers.answers.map(({ verdict }) => verdict?.$case);
    expect(verdicts).toEqual(['refused', 'grant', 'grant']);
    const fence = await node.first('fence');
    expect(fence).toMatchObject({ scope: FenceScope.PRESENTATIONS, reason: CloseReason.REPLACED });
    expect(fence.authorityEpoch).toBeLessThanOrEqual(answers.authorityEpoch);
    const order = node.inbox.all.map(({ $case }) => $case);
    expect(order.indexOf('fence')).toBeLessThan(order.lastIndexOf('answers'));
  });

  test('of two in one batch, only the one that stands at its end is granted', async () => {
    await using stage = await Stage.open();
    const { node, worker, operator } = await atWork(stage);
    const present = { operation: Operation.PRESENT, replace: true };
    expect(
      await node.ask(
        question(operator, worker, { ...present, presentation: 1n }),
        question(operator, worker, { ...present, presentation: 2n }),
      ),
    ).toEqual(['PRESENTATION_ENDED', 'granted']);
  });

  test('ended by the node, it makes room for another', async () => {
    await using stage = await Stage.open();
    const { node, worker, operator } = await atWork(stage);
    await node.present(operator, worker);
    node.send({ message: { $case: 'presentationEnded', value: { presentation: 1n } } });
    expect(await node.observe(operator, worker)).toBe('PRESENTATION_ENDED');
    expect(await node.present(operator, worker, { presentation: 2n })).toBe('granted');
  });

  test('the operator’s Bind ending fences it', async () => {
    await using stage = await Stage.open();
    const { node, adaBind, worker, operator } = await atWork(stage);
    await node.present(operator, worker);
    await adaBind.leave();
    const fence = await node.first('fence');
    expect(fence).toMatchObject({
      workerRef: worker.workerRef,
      scope: FenceScope.PRESENTATIONS,
      reason: CloseReason.CONTROL_UNBOUND,
    });
    expect(await node.observe(operator, worker)).toBe('CONTROL_CHANNEL_NOT_BOUND');
  });
});

describe('P7: closing', () => {
  test('fences presentations, then the possession, then is fenced', async () => {
    await using stage = await Stage.open();
    const { node, ada, worker, operator } = await atWork(stage);
    await node.present(operator, worker);
    const closed = await ada.close(worker);
    expect(closed).toMatchObject({
      fencing: Fencing.FENCED,
      worker: { state: WorkerState.CLOSED },
    });
    expect(node.fences()).toEqual([
      presentationsFence(CloseReason.WORKER_CLOSED),
      possessionFence(CloseReason.WORKER_CLOSED),
    ]);
    expect(await node.observe(operator, worker)).toBe('WORKER_CLOSED');
  });

  test('nothing resolves from its first fact on, and the possession is not fenced before the presentations are', async () => {
    await using stage = await Stage.open();
    const { node, ada, worker, operator, run } = await atWork(stage);
    node.acks = false;
    await node.present(operator, worker);
    const closing = ada.close(worker);
    const first = await node.first('fence');
    expect(
      await node.ask(
        question(operator, worker),
        question(run, worker, { operation: Operation.AGENT_INPUT }),
      ),
    ).toEqual(['WORKER_CLOSED', 'WORKER_CLOSED']);
    expect(await refusalOf(ada.reopen(worker))).toBe('WORKER_CLOSING');
    expect(node.fences()).toHaveLength(1);
    node.acks = true;
    node.ack(first);
    expect((await closing).fencing).toBe(Fencing.FENCED);
    expect(node.fences()).toHaveLength(2);
  });

  test('a reservation counts as something to fence', async () => {
    await using stage = await Stage.open();
    const node = await stage.node();
    await node.reconciled();
    const ada = await stage.operator();
    await ada.bind();
    const worker = await ada.open();
    const agent = await stage.agent();
    await agent.bind();
    await agent.occupy(worker);
    await node.reserve(node.introduce(agent), worker);
    expect((await ada.close(worker)).fencing).toBe(Fencing.FENCED);
    expect(node.fences()).toHaveLength(2);
  });

  test('a worker whose terminal is gone is fenced all the same: a look may still be on its way out', async () => {
    await using stage = await Stage.open();
    const { node, ada, worker, operator, attachmentRef } = await atWork(stage);
    await node.present(operator, worker);
    await node.release(attachmentRef);
    expect((await ada.close(worker)).fencing).toBe(Fencing.FENCED);
    expect(node.fences()).toEqual([
      presentationsFence(CloseReason.RELEASED),
      presentationsFence(CloseReason.WORKER_CLOSED),
      possessionFence(CloseReason.WORKER_CLOSED),
    ]);
  });

  test('a worker without a terminal does not wait for a node that goes away', async () => {
    await using stage = await Stage.open();
    const { node, ada, worker, attachmentRef } = await atWork(stage);
    await node.release(attachmentRef);
    node.acks = false;
    const closing = ada.close(worker);
    await node.first('fence');
    await node.leave();
    expect((await closing).fencing).toBe(Fencing.FENCED_BY_DISCONNECT);
    await eventually(async () => (await ada.list())[0]?.state === WorkerState.CLOSED);
  });

  test('without an acknowledgement the node is cut off, and the closing ends when it is back', async () => {
    await using stage = await Stage.open({ fenceAckMs: 2_000 });
    const { node, ada, worker, carried } = await atWork(stage);
    node.acks = false;
    const closing = ada.close(worker);
    await node.first('fence');
    stage.clock.advance(2_000);
    expect(await closing).toMatchObject({
      fencing: Fencing.FENCED_BY_DISCONNECT,
      worker: { state: WorkerState.CLOSING },
    });
    expect(await node.ended).toMatch(/status/);
    expect(await refusalOf(ada.reopen(worker))).toBe('WORKER_CLOSING');
    expect((await ada.close(worker)).fencing).toBe(Fencing.FENCED_BY_DISCONNECT);
    const back = await stage.node({ carried });
    const { verdicts } = await back.reconciled();
    expect(verdicts).toMatchObject([{ keep: false, reason: CloseReason.WORKER_CLOSED }]);
    await back.ask();
    await eventually(async () => (await refusalOf(ada.reopen(worker))) === 'granted');
    expect(back.fences()).toHaveLength(2);
  });

  test('a late acknowledgement of a cut stream counts for nothing', async () => {
    await using stage = await Stage.open();
    const { node, ada, worker, carried } = await atWork(stage);
    node.acks = false;
    const closing = ada.close(worker);
    const fence = await node.first('fence');
    stage.clock.advance(2_000);
    await closing;
    node.ack(fence);
    const back = await stage.node({ carried, acks: false });
    await back.first('fence');
    expect(await refusalOf(ada.reopen(worker))).toBe('WORKER_CLOSING');
  });

  test('while the node is away it is reported at once, and waits for it', async () => {
    await using stage = await Stage.open();
    const { node, ada, worker, carried } = await atWork(stage);
    await node.leave();
    await eventually(async () => (await ada.list())[0]?.dataEndpoint === '');
    expect((await ada.close(worker)).fencing).toBe(Fencing.FENCED_BY_DISCONNECT);
    const back = await stage.node({ carried });
    await back.reconciled();
    await eventually(async () => (await ada.list())[0]?.state === WorkerState.CLOSED);
  });

  test('a node that returns within the time makes it fenced after all', async () => {
    await using stage = await Stage.open();
    const { node, ada, worker, carried } = await atWork(stage);
    node.acks = false;
    const closing = ada.close(worker);
    await node.first('fence');
    await node.leave();
    const back = await stage.node({ carried });
    expect((await closing).fencing).toBe(Fencing.FENCED);
    expect(back.fences()).toHaveLength(2);
  });

  test('the time is of one attempt on one stream: a new stream is not cut for an older one', async () => {
    await using stage = await Stage.open({ fenceAckMs: 2_000 });
    const { node, ada, worker, carried } = await atWork(stage);
    node.acks = false;
    const closing = ada.close(worker);
    await node.first('fence');
    stage.clock.advance(1_999);
    await node.leave();
    const back = await stage.node({ carried, acks: false });
    const fence = await back.first('fence');
    stage.clock.advance(1);
    expect((await closing).fencing).toBe(Fencing.FENCED_BY_DISCONNECT);
    back.acks = true;
    back.ack(fence);
    await eventually(async () => (await ada.list())[0]?.state === WorkerState.CLOSED);
    expect(back.fences()).toHaveLength(2);
  });

  test('a second call joins the running closing', async () => {
    await using stage = await Stage.open();
    const { node, ada, worker } = await atWork(stage);
    node.acks = false;
    const closings = [ada.close(worker), ada.close(worker)];
    const fence = await node.first('fence');
    node.acks = true;
    node.ack(fence);
    for (const closing of closings) {
      expect((await closing).fencing).toBe(Fencing.FENCED);
    }
    expect(node.fences()).toHaveLength(2);
  });
});

/** Asks until it is so; the test's own time is the deadline. */
async function eventually(isSo: () => Promise<boolean>): Promise<void> {
  while (!(await isSo())) {
    await new Promise((resolve) => setImmediate(resolve));
  }
}

describe('an agent that comes and goes', () => {
  test('within the grace takes its terminal back, in new hands', async () => {
    await using stage = await Stage.open();
    const { node, worker, agent, agentBind, operator, run, attachmentRef } = await atWork(stage);
    await node.present(operator, worker);
    await agentBind.leave();
    const fence = await node.first('fence');
    expect(fence.reason).toBe(CloseReason.AGENT_UNBOUND);
    expect(await node.observe(operator, worker)).toBe('LOCUS_NOT_OCCUPIED');
    expect(await node.ask(question(run, worker, { operation: Operation.AGENT_INPUT }))).toEqual([
      'AGENT_CHANNEL_NOT_BOUND',
    ]);
    stage.clock.advance(29_000);
    await agent.bind();
    expect(await node.first('reattached')).toMatchObject({
      workerRef: worker.workerRef,
      attachmentRef,
      attachmentEpoch: 2n,
      carrierEpoch: 2n,
    });
    stage.clock.advance(60_000);
    expect(await node.observe(operator, worker)).toBe('PRESENTATION_ENDED');
    expect(await node.ask(question(run, worker, { operation: Operation.AGENT_INPUT }))).toEqual([
      'granted',
    ]);
  });

  test('after the grace finds its terminal ended and its seat empty', async () => {
    await using stage = await Stage.open();
    const { node, worker, agent, agentBind } = await atWork(stage);
    await agentBind.leave();
    await eventually(async () => {
      stage.clock.advance(30_000);
      return node.fences().length > 0;
    });
    expect(node.fences()).toEqual([possessionFence(CloseReason.AGENT_UNBOUND)]);
    await agent.bind();
    expect(await refusalOf(agent.occupy(worker))).toBe('granted');
  });

  test('without a terminal leaves its seat at once', async () => {
    await using stage = await Stage.open();
    const { node, worker, agentBind, attachmentRef } = await atWork(stage);
    await node.release(attachmentRef);
    await agentBind.leave();
    const other = await stage.agent('demo');
    await other.bind();
    await eventually(async () => (await refusalOf(other.occupy(worker))) === 'granted');
  });
});

describe('a data node’s stream', () => {
  test('a second one of the node supersedes the first', async () => {
    await using stage = await Stage.open();
    const { node, worker, operator, carried, ada } = await atWork(stage);
    await node.present(operator, worker);
    const second = await stage.node({ carried });
    expect((await second.reconciled()).verdicts).toMatchObject([{ keep: true }]);
    expect(await node.ended).toBe('ended');
    const again = second.introduce(ada);
    expect(await second.observe(again, worker)).toBe('PRESENTATION_ENDED');
    expect(await second.present(again, worker)).toBe('granted');
  });

  test('a new life of the node releases everything of the old one', async () => {
    await using stage = await Stage.open();
    const { worker, ada, carried } = await atWork(stage);
    const second = await stage.node({ dataIncarnation: 'dn_second', carried });
    expect((await second.reconciled()).verdicts).toMatchObject([{ keep: false }]);
    const [listed] = await ada.list();
    expect(listed?.state).toBe(WorkerState.VACANT);
    const other = await stage.agent('demo');
    await other.bind();
    expect(await refusalOf(other.occupy(worker))).toBe('granted');
  });

  test('a worker of another node is not its to ask about, nor its terminal to tell of', async () => {
    await using stage = await Stage.open();
    const { worker, ada, agent, attachmentRef, node, operator } = await atWork(stage);
    const other = await stage.node({ node: 'elsewhere' });
    await other.reconciled();
    expect(await other.present(other.introduce(ada), worker)).toBe('NOT_CARRIED_HERE');
    expect(await refusalOf(other.possess(other.introduce(agent), worker))).toBe('NOT_CARRIED_HERE');
    expect((await other.activate(attachmentRef)).refused).toBeDefined();
    await other.release(attachmentRef);
    expect(await node.present(operator, worker)).toBe('granted');
  });

  test.each([
    ['nothing before its inventory', { message: { $case: 'farewell', value: { caller: 1 } } }],
    [
      'an inventory of nobody',
      {
        message: { $case: 'inventory', value: { dataIncarnation: '', endpoint: '', carried: [] } },
      },
    ],
    ['a message of another contract', { message: undefined }],
  ] as const)('is refused for %s', async (_what, first) => {
    await using stage = await Stage.open();
    const node = await stage.node({ first: first as never });
    expect(await node.ended).toBe('REQUEST_INVALID');
  });

  test('is refused for callers it never introduced, twice introduced, or of another root', async () => {
    await using stage = await Stage.open({ callersPerNodeMax: 2 });
    const ada = await stage.operator();
    const worker = { workerRef: 'wk_0', workerGeneration: 1n } as never;
    const unknown = await stage.node();
    expect(await refusalOf(unknown.ask(question(7, worker)))).toBe('REQUEST_INVALID');
    const unknownRun = await stage.node();
    expect(await refusalOf(unknownRun.reserve(7, worker))).toBe('REQUEST_INVALID');
    const twice = await stage.node();
    const value = { caller: twice.introduce(ada), certificate: Buffer.alloc(0) };
    twice.send({ message: { $case: 'introduction', value } });
    expect(await twice.ended).toBe('REQUEST_INVALID');
    const many = await stage.node();
    for (let count = 0; count < 3; count += 1) {
      many.introduce(ada);
    }
    expect(await many.ended).toBe('REQUEST_INVALID');
    await using elsewhere = await Stage.open();
    const foreign = await stage.node();
    const mallory = await elsewhere.mint({ role: 'human-control', name: 'ada' });
    foreign.introduce({ identity: mallory } as Player);
    expect(await foreign.ended).toBe('REQUEST_INVALID');
  });

  test('is refused when its inventory does not come in time', async () => {
    await using stage = await Stage.open({ nodeInventoryMs: 10_000 });
    const node = await stage.node({ isSilent: true });
    const other = await stage.node({ node: 'other' });
    await other.reconciled();
    stage.clock.advance(10_000);
    expect(await node.ended).toBe('REQUEST_INVALID');
    expect(await other.ask()).toEqual([]);
  });

  test('numbers of callers that said farewell are free again', async () => {
    await using stage = await Stage.open({ callersPerNodeMax: 1 });
    const ada = await stage.operator();
    const node = await stage.node();
    for (let count = 0; count < 3; count += 1) {
      const caller = node.introduce(ada);
      node.send({ message: { $case: 'farewell', value: { caller } } });
    }
    expect(await node.ask()).toEqual([]);
  });

  test('is refused for a batch that is too large, or numbered backwards', async () => {
    await using stage = await Stage.open({ batchQuestionsMax: 2 });
    const ada = await stage.operator();
    const worker = { workerRef: 'wk_0', workerGeneration: 1n } as never;
    const large = await stage.node();
    const caller = large.introduce(ada);
    const three = Array.from({ length: 3 }, () => question(caller, worker));
    expect(await refusalOf(large.ask(...three))).toBe('REQUEST_INVALID');
    const backwards = await stage.node();
    await backwards.ask();
    backwards.send({ message: { $case: 'batch', value: { batch: 1n, questions: [] } } });
    expect(await backwards.ended).toBe('REQUEST_INVALID');
  });
});

describe('a restart', () => {
  test('is a new life of the world, in which nobody is there and everything open still is', async () => {
    await using stage = await Stage.open();
    const { node, ada, worker, carried, agent, attachmentRef } = await atWork(stage);
    const before = await node.reconciled();
    await stage.crash();
    const back = await stage.node({ carried });
    const after = await back.reconciled();
    expect(after.worldGeneration).toBe(before.worldGeneration + 1n);
    expect(after.worldIncarnation).not.toBe(before.worldIncarnation);
    expect(after.verdicts).toEqual([{ attachmentRef, keep: true, reason: 0 }]);
    const operator = back.introduce(ada);
    const run = back.introduce(agent);
    const present = question(operator, worker, { operation: Operation.PRESENT });
    const type = question(run, worker, { operation: Operation.AGENT_INPUT });
    expect(await back.ask(present, type)).toEqual([
      'CONTROL_CHANNEL_NOT_BOUND',
      'AGENT_CHANNEL_NOT_BOUND',
    ]);
    const adaAgain = await stage.operator('ada', ada.identity);
    await adaAgain.bind();
    expect(await back.ask(present)).toEqual(['LOCUS_NOT_OCCUPIED']);
    const agentAgain = await stage.agent('demo', agent.identity);
    await agentAgain.bind();
    expect(await back.first('reattached')).toMatchObject({ attachmentEpoch: 2n });
    expect(await back.ask(present, type)).toEqual(['granted', 'granted']);
  });

  test('an occupant that does not come back within the grace is ended', async () => {
    await using stage = await Stage.open();
    const { carried, worker } = await atWork(stage);
    await stage.crash();
    const back = await stage.node({ carried });
    await back.reconciled();
    stage.clock.advance(30_000);
    const fence = await back.first('fence');
    expect(fence).toMatchObject({
      workerRef: worker.workerRef,
      scope: FenceScope.POSSESSION,
      reason: CloseReason.AGENT_UNBOUND,
    });
  });

  test('after the grace an inventory’s terminals are ended by name', async () => {
    await using stage = await Stage.open();
    const { carried } = await atWork(stage);
    await stage.crash();
    stage.clock.advance(30_000);
    const back = await stage.node({ carried });
    expect((await back.reconciled()).verdicts).toMatchObject([
      { keep: false, reason: CloseReason.AGENT_UNBOUND },
    ]);
  });

  test('finishes a closing that it finds half done', async () => {
    await using stage = await Stage.open();
    const { node, ada, worker, carried } = await atWork(stage);
    node.acks = false;
    void ada.close(worker).catch(() => undefined);
    await node.first('fence');
    await stage.crash();
    const adaAgain = await stage.operator('ada', ada.identity);
    await adaAgain.bind();
    expect((await adaAgain.list())[0]?.state).toBe(WorkerState.CLOSING);
    expect((await adaAgain.close(worker)).fencing).toBe(Fencing.FENCED_BY_DISCONNECT);
    const back = await stage.node({ carried });
    await back.reconciled();
    await eventually(async () => (await adaAgain.list())[0]?.state === WorkerState.CLOSED);
    expect(back.fences()).toEqual([
      presentationsFence(CloseReason.WORKER_CLOSED),
      possessionFence(CloseReason.WORKER_CLOSED),
    ]);
  });

  test('finishes one without a terminal by itself', async () => {
    await using stage = await Stage.open();
    const { node, ada, worker, attachmentRef } = await atWork(stage);
    node.acks = false;
    void ada.close(worker).catch(() => undefined);
    await node.first('fence');
    await node.release(attachmentRef);
    await stage.crash();
    const adaAgain = await stage.operator('ada', ada.identity);
    await adaAgain.bind();
    await eventually(async () => (await adaAgain.list())[0]?.state === WorkerState.CLOSED);
  });

  test('a second process on the same store is refused by name', async () => {
    await using stage = await Stage.open();
    const second = stage.start();
    await expect(second).rejects.toThrow(StartRefused);
    await expect(second).rejects.toThrow('STORE_IN_USE');
  });
});

describe('draining', () => {
  test('ends every stream by name, and vacates no seat', async () => {
    await using stage = await Stage.open();
    const { node, adaBind, agentBind, agent, carried, ada } = await atWork(stage);
    const control = stage.dial(await stage.mint({ role: 'service', name: 'control' }));
    const tail = control.tail({ afterIndex: 0n });
    const status = control.followStatus({});
    const ends = [tail, status].map(
      (call) => new Promise((resolve) => call.on('error', (error) => resolve(String(error)))),
    );
    await new Promise((resolve) => status.once('data', resolve));
    tail.resume();
    status.resume();
    await stage.running.drain();
    expect(await Promise.all([node.ended, adaBind.ended, agentBind.ended])).toEqual([
      'SERVICE_DRAINING',
      'SERVICE_DRAINING',
      'SERVICE_DRAINING',
    ]);
    for (const end of await Promise.all(ends)) {
      expect(end).toContain('going down');
    }
    await stage.start();
    const back = await stage.node({ carried });
    await back.reconciled();
    await (await stage.agent('demo', agent.identity)).bind();
    await back.first('reattached');
    await (await stage.operator('ada', ada.identity)).bind();
  });
});

describe('a nearly full disk', () => {
  test('refuses what begins, and lets what ends go on', async () => {
    await using stage = await Stage.open();
    const { ada, worker, carried, agent } = await atWork(stage);
    await stage.crash({ journalLowWaterBytes: Number.MAX_SAFE_INTEGER });
    const back = await stage.node({ carried });
    await back.reconciled();
    const adaAgain = await stage.operator('ada', ada.identity);
    const bind = await adaAgain.bind();
    expect(await refusalOf(adaAgain.open({ name: 'other' }))).toBe('JOURNAL_FULL');
    expect(await refusalOf(adaAgain.issueIdentity('demo'))).toBe('JOURNAL_FULL');
    expect(await refusalOf(bind.renew())).toBe('granted');
    const run = await stage.agent('demo', agent.identity);
    await run.bind();
    expect(await refusalOf(run.issueRun())).toBe('JOURNAL_FULL');
    expect((await adaAgain.close(worker)).fencing).toBe(Fencing.FENCED);
    expect(await refusalOf(adaAgain.reopen(worker))).toBe('JOURNAL_FULL');
  });
});

describe('a full disk', () => {
  test('does not refuse a release: it is answered when it is durable', async () => {
    await using stage = await Stage.open({ journalRetryMs: 1_000 });
    const { node, ada, attachmentRef } = await atWork(stage);
    let released: ReturnType<typeof node.release>;
    {
      using _full = stage.fullDisk();
      released = node.release(attachmentRef);
      await node.ask();
      expect((await ada.list())[0]?.state).toBe(WorkerState.RUNNING);
    }
    stage.clock.advance(1_000);
    expect((await released).refused).toBeUndefined();
    expect((await ada.list())[0]?.state).toBe(WorkerState.VACANT);
  });
});

test('a refused call is logged by name, with what it was about and nothing of who or what else', async () => {
  await using stage = await Stage.open();
  const ada = await stage.operator();
  expect(await refusalOf(ada.open())).toBe('CONTROL_CHANNEL_NOT_BOUND');
  const line = JSON.parse(stage.logged.at(-1) ?? '');
  expect(line).toMatchObject({
    level: 30,
    msg: 'refused',
    rpc: 'OpenWorker',
    reason: 'CONTROL_CHANNEL_NOT_BOUND',
  });
});

describe('the tail', () => {
  async function read(stage: Stage, afterIndex: bigint, count: number) {
    const client = stage.dial(await stage.mint({ role: 'service', name: 'provenance' }));
    const call = client.tail({ afterIndex });
    const rows: { index: bigint; kind: string; body: string }[] = [];
    await new Promise<void>((resolve) => {
      call.on('error', () => undefined);
      call.on('data', ({ index, kind, body }) => {
        rows.push({ index, kind, body: body.toString('utf8') });
        if (rows.length === count) {
          resolve();
        }
      });
    });
    call.cancel();
    return rows;
  }

  test('is every durable fact in order, page after page, then those to come', async () => {
    await using stage = await Stage.open({ tailPageRows: 2 });
    const ada = await stage.operator();
    await ada.bind();
    const reading = read(stage, 0n, 9);
    for (let count = 0; count < 7; count += 1) {
      await ada.open({ name: `worker-${count}` });
    }
    const rows = await reading;
    expect(rows.map(({ index }) => index)).toEqual([1n, 2n, 3n, 4n, 5n, 6n, 7n, 8n, 9n]);
    expect(rows.map(({ kind }) => kind)).toEqual([
      'world-started',
      'control-bound',
      ...Array.from({ length: 7 }, () => 'worker-opened'),
    ]);
    expect((await read(stage, 7n, 2)).map(({ index }) => index)).toEqual([8n, 9n]);
  });

  test('P9: a look leaves nothing in it, nor anywhere else on disk', async () => {
    await using stage = await Stage.open();
    const { node, worker, operator, ada } = await atWork(stage);
    const before = await journalBytes(stage);
    const logged = stage.logged.length;
    await node.present(operator, worker);
    await node.observe(operator, worker);
    await node.present(operator, worker, { presentation: 2n, replace: true });
    node.send({ message: { $case: 'presentationEnded', value: { presentation: 2n } } });
    await node.observe(operator, worker);
    expect(await node.ask(question(operator, { ...worker, workerRef: 'wk_0' }))).toEqual([
      'WORKER_UNKNOWN',
    ]);
    expect(await journalBytes(stage)).toEqual(before);
    expect(stage.logged.slice(logged)).toEqual([]);
    await ada.close(worker);
    expect((await journalBytes(stage)).equals(before)).toBe(false);
  });
});

async function journalBytes(stage: Stage): Promise<Buffer> {
  const file = join(stage.stateDir, 'authority', 'journal.sqlite');
  return Buffer.concat([readFileSync(file), readFileSync(`${file}-wal`)]);
}

test('the status is who runs and who is looked at, the newest replacing what was not taken', async () => {
  await using stage = await Stage.open();
  const client = stage.dial(await stage.mint({ role: 'service', name: 'control' }));
  const call = client.followStatus({});
  const seen: string[] = [];
  call.on('error', () => undefined);
  call.on('data', ({ workers }) => {
    for (const { attached, presented } of workers) {
      seen.push(`${attached ? 'attached' : 'vacant'} ${presented ? 'presented' : 'unseen'}`);
    }
  });
  const { node, worker, operator, ada } = await atWork(stage);
  await node.present(operator, worker);
  await eventually(async () => seen.at(-1) === 'attached presented');
  await ada.close(worker);
  expect(seen[0]).toBe('vacant unseen');
  call.cancel();
});

test('a certificate request is the client’s: its subject is ignored', async () => {
  await using stage = await Stage.open();
  const ada = await stage.operator();
  const bind = await ada.bind();
  const { request } = await requestCertificate();
  const { certificatePem } = await bind.renew(Buffer.from(request));
  expect(certificatePem).toContain('BEGIN CERTIFICATE');
  expect(designationOf(await ada.open()).expectedWorkerGeneration).toBe(1n);
  expect(new Bound(ada.client).inbox.all).toEqual([]);
});

describe('a restart after any fact', () => {
  /** Everything that an eventful life writes, fact by fact. */
  async function eventfulLife(): Promise<readonly StoredFact[]> {
    await using stage = await Stage.open();
    const { node, ada, adaBind, worker, agent, agentBind, operator } = await atWork(stage);
    await node.present(operator, worker);
    await adaBind.renew();
    await agentBind.leave();
    await node.first('fence');
    await agent.bind();
    await ada.close(worker);
    const reopened = await ada.reopen(worker);
    await agent.occupy(reopened);
    await node.possess(node.introduce(agent), reopened);
    await ada.issueIdentity('demo');
    await ada.close(reopened);
    stage.abort();
    return factsIn(stage);
  }

  function factsIn(stage: Stage): readonly StoredFact[] {
    const journal = opened(stage.stateDir);
    const facts = journal.rowsAfter(0n, 1_000);
    journal.close();
    return facts;
  }

  function opened(stateDir: string): Journal {
    const path = join(stateDir, 'authority', 'journal.sqlite');
    const journal = Journal.open({ path, names: randomNames });
    if (journal.kind === 'refused') {
      throw new Error(journal.refusal.reason);
    }
    return journal.value;
  }

  test('begins, finishes what was closing, and serves', async () => {
    const facts = await eventfulLife();
    const kinds = new Set(facts.map(({ kind }) => kind));
    expect(kinds.size).toBeGreaterThan(11);
    for (let count = 1; count <= facts.length; count += 1) {
      await using stage = await Stage.open();
      stage.abort();
      rmSync(join(stage.stateDir, 'authority'), { recursive: true });
      const journal = opened(stage.stateDir);
      journal.append(
        facts.slice(0, count).map(({ kind, body }) => decodeEvent(kind, body)),
        0,
      );
      journal.close();
      await stage.start();
      const node = await stage.node();
      await node.reconciled();
      const ada = await stage.operator();
      await ada.bind();
      await eventually(async () => {
        const [worker] = await ada.list();
        return worker?.state !== WorkerState.CLOSING;
      });
      const [worker] = await ada.list();
      if (worker !== undefined) {
        const isOpen = worker.state === WorkerState.VACANT;
        expect(await refusalOf(isOpen ? ada.close(worker) : ada.reopen(worker))).toBe('granted');
      }
    }
  });
});

test('a node that takes nothing of what it is sent is cut off, not refused behind it all', async () => {
  await using stage = await Stage.open({ nodeBacklogMax: 40_960 });
  const { node, worker, operator, ada } = await atWork(stage);
  node.stopReading();
  const many = Array.from({ length: 4_096 }, () => question(operator, worker));
  for (let count = 0; count < 60; count += 1) {
    void node.batch(...many).catch(() => undefined);
  }
  await eventually(async () => (await ada.list())[0]?.dataEndpoint === '');
  node.readOn();
  expect(await node.ended).toMatch(/status/);
});
