import { afterEach, beforeAll, expect, test } from 'vitest';
import { statusOf } from '#chassis/refusal-status.js';
import type { Clock } from '#kernel/clock.js';
import { AgentBind } from './agent-bind.js';
import { halfLifeOf } from './bind-stream.js';
import { ControlBind } from './control-bind.js';
import { type BindCall, DoubledRoot, ServiceDouble } from './service-double.js';

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

async function serving(bind: (call: BindCall) => void, port = 0): Promise<ServiceDouble> {
  const service = await ServiceDouble.start(root, 'authority', { bind }, port);
  owned.push(service);
  return service;
}

function accept(call: BindCall): void {
  call.on('error', () => undefined);
  call.write({ event: { $case: 'bound', value: { certificateNotAfterMs: 0n } } });
}

/** Answers renewals with a certificate of the double's root. */
function acceptAndRenew(call: BindCall): void {
  accept(call);
  call.on('data', ({ operation }) => {
    if (operation?.$case === 'renew') {
      void renewFor(call, operation.value.certificateRequest);
    }
  });
}

async function renewFor(call: BindCall, request: Uint8Array): Promise<void> {
  const notAfterMs = Date.now() + 7_200_000;
  const subject = { role: 'agent', name: 'demo', notAfterMs } as const;
  const answer = await root.authority.answer(request, subject, Date.now());
  if (answer.kind === 'granted') {
    const value = { certificatePem: answer.value, notAfterMs: BigInt(notAfterMs) };
    call.write({ event: { $case: 'renewed', value } });
  }
}

test('another operator at the controls is told by name', async () => {
  const { endpoint } = await serving((call) => {
    call.on('error', () => undefined);
    call.emit('error', statusOf({ reason: 'CONTROL_CHANNEL_OCCUPIED', facts: {} }));
  });
  const identity = await root.identity('human-control', 'eve');
  await expect(ControlBind.open(endpoint, identity)).rejects.toMatchObject({
    refusal: { reason: 'CONTROL_CHANNEL_OCCUPIED' },
  });
});

test('a presence that ends by itself is lost', async () => {
  let call: BindCall | undefined;
  const { endpoint } = await serving((incoming) => {
    call = incoming;
    accept(incoming);
  });
  const control = await ControlBind.open(endpoint, await root.identity('human-control', 'ada'));
  call?.end();
  expect((await control.lost).message).toContain('the bind ended');
});

test('the certificate is renewed at half life with a key made here', async () => {
  const { endpoint } = await serving(acceptAndRenew);
  const identity = await root.identity('agent', 'demo', Date.now() + 3_600_000);
  const clock = new HeldClock(Date.now());
  const renewed: string[] = [];
  using bind = await AgentBind.open(endpoint, identity, {
    clock,
    onRenewed: (newest) => renewed.push(newest.identity.keyPem),
  });
  await clock.advanceTo(halfLifeOf(identity) - 1);
  expect(renewed).toEqual([]);
  await clock.advanceTo(halfLifeOf(identity));
  await until(() => renewed.length === 1);
  expect(renewed[0]).not.toBe(identity.identity.keyPem);
  expect(bind.identity.identity.keyPem).toBe(renewed[0]);
});

test('an agent binds again when authority comes back, with the same certificate', async () => {
  const certificates: string[] = [];
  const note = (call: BindCall): void => {
    certificates.push(call.getAuthContext().sslPeerCertificate?.fingerprint256 ?? 'none');
    accept(call);
  };
  const first = await serving(note);
  const port = Number(first.endpoint.split(':')[1]);
  const bind = await AgentBind.open(first.endpoint, await root.identity('agent', 'demo'));
  first[Symbol.dispose]();
  await serving(note, port);
  await until(() => certificates.length === 2);
  expect(certificates[1]).toBe(certificates[0]);
  bind.close();
});

test('an agent that is refused when it binds again gives up, by that name', async () => {
  const first = await serving(accept);
  const port = Number(first.endpoint.split(':')[1]);
  const bind = await AgentBind.open(first.endpoint, await root.identity('agent', 'demo'));
  first[Symbol.dispose]();
  await serving((call) => {
    call.on('error', () => undefined);
    call.emit('error', statusOf({ reason: 'CERTIFICATE_EXPIRED', facts: {} }));
  }, port);
  expect(await bind.lost).toMatchObject({ refusal: { reason: 'CERTIFICATE_EXPIRED' } });
});

test('a full disk does not end a presence: it binds again when there is room', async () => {
  const first = await serving(accept);
  const port = Number(first.endpoint.split(':')[1]);
  using _bind = await AgentBind.open(first.endpoint, await root.identity('agent', 'demo'));
  first[Symbol.dispose]();
  let asked = 0;
  await serving((call) => {
    asked += 1;
    if (asked === 1) {
      call.on('error', () => undefined);
      call.emit('error', statusOf({ reason: 'JOURNAL_FULL', facts: {} }));
    } else {
      accept(call);
    }
  }, port);
  await until(() => asked === 2);
});

test('after a renewal calls are made as the newest identity', async () => {
  const { endpoint } = await serving(acceptAndRenew);
  using bind = await AgentBind.open(endpoint, await root.identity('agent', 'demo'));
  const before = bind.authority;
  expect(bind.authority).toBe(before);
  await bind.renew();
  const after = bind.authority;
  expect(after).not.toBe(before);
  expect(bind.authority).toBe(after);
});

test('a keeper that throws costs neither the renewal nor the presence', async () => {
  const { endpoint } = await serving(acceptAndRenew);
  const identity = await root.identity('agent', 'demo');
  using bind = await AgentBind.open(endpoint, identity, {
    onRenewed: () => {
      throw new Error('the disk is full');
    },
  });
  const first = await bind.renew();
  expect(first).not.toBe(identity);
  expect(await bind.renew()).not.toBe(first);
});

/** A clock that a test moves. */
class HeldClock implements Clock {
  #nowMs: number;
  #due: { atMs: number; call: () => void }[] = [];

  constructor(nowMs: number) {
    this.#nowMs = nowMs;
  }

  now(): number {
    return this.#nowMs;
  }

  monotonic(): number {
    return this.#nowMs;
  }

  after(delayMs: number, call: () => void): Disposable {
    const entry = { atMs: this.#nowMs + delayMs, call };
    this.#due.push(entry);
    return {
      [Symbol.dispose]: () => {
        this.#due = this.#due.filter((other) => other !== entry);
      },
    };
  }

  async advanceTo(ms: number): Promise<void> {
    this.#nowMs = ms;
    const ready = this.#due.filter(({ atMs }) => atMs <= ms);
    this.#due = this.#due.filter(({ atMs }) => atMs > ms);
    for (const { call } of ready) {
      call();
    }
    await new Promise((resolve) => setImmediate(resolve));
  }
}

async function until(isTrue: () => boolean): Promise<void> {
  while (!isTrue()) {
    await new Promise((resolve) => setImmediate(resolve));
  }
}
