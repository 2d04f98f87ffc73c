/** Messages that nobody honest sends: refused by name, or the end of their own call, and of nothing else. */
import { randomBytes } from 'node:crypto';
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { connect as connectTcp } from 'node:net';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { gzipSync } from 'node:zlib';
import { describe, expect, test } from 'vitest';
import { readIdentity } from '#chassis/identity-files.js';
import type { Designation } from '#client/presentation.js';
import { Workers } from '#client/workers.js';
import { methodCallers } from '#gen/channels.js';
import {
  BindRequest,
  CloseWorkerRequest,
  OpenWorkerRequest,
} from '#gen/wheelhouse/authority/v1/authority.js';
import { PossessRequest, PossessResponse, PresentResponse } from '#gen/wheelhouse/data/v1/data.js';
import { CloseReason, Reason } from '#gen/wheelhouse/refusal/v1/refusal.js';
import { at, ownProcesses } from '../stack/depth.js';
import { within } from '../stack/eventually.js';
import { falsifier, type Subject } from '../stack/falsifier.js';
import type { Stack, StackOptions } from '../stack/stack.js';
import { type AgentRun, boundAgent, raw } from './actors.js';
import {
  framed,
  nameOf,
  outputAck,
  possessOpen,
  presentOpen,
  type RawCall,
  RawConnection,
} from './hostile-client.js';
import { echo, growthOf, stillServes } from './hostile-room.js';
import { product, Room } from './room.js';

const MIB = 1024 * 1024;
const present = '/wheelhouse.data.v1.DataService/Present';
const possess = '/wheelhouse.data.v1.DataService/Possess';
const authorityMethod = (name: string): string =>
  `/wheelhouse.authority.v1.AuthorityService/${name}`;

/** A room with an agent at work, and hostile hands on the operator's own connections. */
class Stage implements AsyncDisposable {
  readonly room: Room;
  readonly run: AgentRun;
  /** As the operator. */
  readonly data: RawConnection;
  readonly authority: RawConnection;

  private constructor(room: Room, run: AgentRun, data: RawConnection, authority: RawConnection) {
    this.room = room;
    this.run = run;
    this.data = data;
    this.authority = authority;
  }

  static async open(subject: Subject, settings: StackOptions['settings'] = {}): Promise<Stage> {
    const room = await Room.open(subject, settings);
    const run = await room.runs(echo);
    await run.shows(/ready/);
    const { endpoints } = room.stack;
    const operator = await room.stack.identityFor('human-control', 'operator');
    return new Stage(
      room,
      run,
      await RawConnection.open(endpoints.data, operator),
      await RawConnection.open(endpoints.authority, operator),
    );
  }

  /** Another worker's agent, seated and with nothing running. */
  async seats(name: string): Promise<Seat> {
    const { stack, operator } = this.room;
    const worker = await operator.opens(name);
    const bind = await boundAgent(stack, await operator.identityOf(name));
    await new Workers(bind.authority).occupy(worker);
    const data = await RawConnection.open(stack.endpoints.data, bind.identity);
    return {
      worker,
      data,
      [Symbol.dispose]: () => [data, bind].map((each) => each[Symbol.dispose]()),
    };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.data[Symbol.dispose]();
    this.authority[Symbol.dispose]();
    await this.run[Symbol.asyncDispose]();
    await this.room[Symbol.asyncDispose]();
  }
}

interface Seat extends Disposable {
  readonly worker: Designation;
  readonly data: RawConnection;
}

async function tooLarge(subject: Subject): Promise<void> {
  await using stage = await Stage.open(subject);
  const { room, run, data, authority } = stage;
  using seat = await stage.seats('other');

  const typing = seat.data.call(possess);
  typing.send(possessOpen(seat.worker, { argv: raw('exec cat >/dev/null') }));
  await typing.heard(1);
  const input = (seq: bigint, bytes: number): Uint8Array =>
    PossessRequest.encode({
      operation: { $case: 'input', value: { seq, payload: Buffer.alloc(bytes, 'x') } },
    }).finish();
  typing.send(input(0n, 4097));
  expect(PossessResponse.decode(await typing.heard(2)).event).toMatchObject({
    $case: 'refused',
    value: { reason: Reason.REQUEST_INVALID, facts: { field: 'input.payload' } },
  });
  typing.send(input(0n, 4096));
  expect(PossessResponse.decode(await typing.heard(3)).event).toEqual({
    $case: 'inputAck',
    value: { nextSeq: 4096n },
  });
  typing.cancel();

  const grownData = growthOf(room.stack, 'data');
  const grownAuthority = growthOf(room.stack, 'authority');
  const huge = Buffer.alloc(10 * MIB, 'x').toString();
  const named = OpenWorkerRequest.fromPartial({ name: huge, workspace: '/' });
  const opening = OpenWorkerRequest.encode(named).finish();
  expect(nameOf(await authority.ask(authorityMethod('OpenWorker'), opening))).toBe(
    'RESOURCE_EXHAUSTED',
  );
  for (const connection of [data, seat.data]) {
    const path = connection === data ? present : possess;
    const call = connection.call(path);
    // What is announced is enough: it need not come.
    call.sendBytes(Buffer.from([0, 0x7f, 0xff, 0xff, 0xff]));
    expect(nameOf(await call.ended())).toBe('RESOURCE_EXHAUSTED');
  }
  const bomb = gzipSync(Buffer.alloc(256 * MIB));
  for (const [encoding, message, status] of [
    ['gzip', bomb, 'RESOURCE_EXHAUSTED'],
    ['gzip', randomBytes(64), 'INTERNAL'],
    ['snappy', randomBytes(64), 'UNIMPLEMENTED'],
  ] as const) {
    const call = data.call(present, { 'grpc-encoding': encoding });
    call.send(message, true);
    expect(nameOf(await call.ended())).toBe(status);
  }
  expect(grownData()).toBeLessThan(32 * MIB);
  expect(grownAuthority()).toBeLessThan(32 * MIB);
  await stillServes(room, run);
}

/** Beyond 64 KiB of headers HTTP/2 says no by itself, and only to the connection that did it. */
async function heavyMetadata(subject: Subject): Promise<void> {
  await using stage = await Stage.open(subject);
  const { room, run } = stage;
  const operator = await room.stack.identityFor('human-control', 'operator');
  for (const plane of ['data', 'authority'] as const) {
    using connection = await RawConnection.open(room.stack.endpoints[plane], operator);
    const path = plane === 'data' ? present : authorityMethod('ListWorkers');
    const call = connection.call(path, { 'x-heavy': 'x'.repeat(128 * 1024) });
    call.finish();
    expect(nameOf(await call.ended())).toBe('lost');
  }
  await stillServes(room, run);
}

/** A refusal that repeats what was asked is told all the same, however long that was. */
async function longNames(subject: Subject): Promise<void> {
  await using stage = await Stage.open(subject);
  const { room, run, data, authority } = stage;
  const long = `${'\u{1F980}'.repeat(100_000)}`;
  const closing = CloseWorkerRequest.fromPartial({ workerRef: long, expectedWorkerGeneration: 1n });
  const closed = await within(
    'the refusal of a long name',
    5_000,
    authority.ask(authorityMethod('CloseWorker'), CloseWorkerRequest.encode(closing).finish()),
  );
  expect(closed.reason).toBe('WORKER_UNKNOWN');
  expect(closed.facts['worker']!.length).toBeLessThanOrEqual(256);
  const look = data.call(present);
  look.send(presentOpen({ workerRef: long, generation: 1n }));
  expect(nameOf(await look.ended())).toBe('REQUEST_INVALID');
  using seat = await stage.seats('other');
  const start = seat.data.call(possess);
  start.send(possessOpen(seat.worker, { argv: [`/${long.slice(0, 50_000)}`] }));
  expect(nameOf(await start.ended())).toBe('SPAWN_FAILED');
  await stillServes(room, run);
  expect(room.stack.log('authority').length).toBeLessThan(100_000);
}

async function outOfTurn(subject: Subject): Promise<void> {
  await using stage = await Stage.open(subject);
  const { room, run, data } = stage;
  const refusedLook = async (...messages: readonly Uint8Array[]): Promise<string> => {
    const call = data.call(present);
    call.sendBytes(Buffer.concat(messages.map((message) => framed(message))));
    return nameOf(await call.ended());
  };
  const open = presentOpen(room.worker, { replace: true });
  const acks = Array.from({ length: 1_000 }, () => outputAck(1n));
  expect(await refusedLook(...acks)).toBe('REQUEST_INVALID');
  expect(await refusedLook(open, ...acks)).toBe('REQUEST_INVALID');
  expect(await refusedLook(open, open)).toBe('REQUEST_INVALID');

  for (const wrong of [outputAck(2n ** 64n - 1n), open]) {
    const look = data.call(present);
    look.send(open);
    const { event } = PresentResponse.decode(await look.heard(1));
    expect(event?.$case).toBe('opened');
    look.send(wrong);
    // Were it let pass, this would be what comes next: typed late, as it goes another way.
    await Promise.race([look.heard(2), delay(1_000)]);
    await run.possession.write(Buffer.from('typed\n'));
    expect(PresentResponse.decode(await look.heard(2)).event).toMatchObject({
      $case: 'closed',
      value: { reason: CloseReason.PROTOCOL_VIOLATION },
    });
    expect(nameOf(await finished(look))).toBe('OK');
  }
  await stillServes(room, run);

  using seat = await stage.seats('other');
  const early = seat.data.call(possess);
  early.send(outputAck(0n));
  expect(nameOf(await early.ended())).toBe('REQUEST_INVALID');
  for (const wrong of [outputAck(1n), possessOpen(seat.worker, { argv: ['cat'] })]) {
    const call = seat.data.call(possess);
    call.send(possessOpen(seat.worker, { argv: raw('exec cat') }));
    await call.heard(1);
    call.send(wrong);
    expect(PossessResponse.decode(await call.heard(2)).event).toMatchObject({
      $case: 'closed',
      value: { reason: CloseReason.PROTOCOL_VIOLATION },
    });
    expect(nameOf(await finished(call))).toBe('OK');
  }
  await stillServes(room, run);
}

async function finished(call: RawCall) {
  call.finish();
  return await call.ended();
}

/** Bytes that are no message, on every RPC by who may ask it; and bytes that are no gRPC at all. */
async function malformed(subject: Subject): Promise<void> {
  const reflecting = { WHEELHOUSE_REFLECTION: '1' };
  await using stage = await Stage.open(subject, { authority: reflecting, data: reflecting });
  const { room, run } = stage;
  const { stack } = room;
  const callers = {
    HUMAN_CONTROL: await stack.identityFor('human-control', 'operator'),
    AGENT: run.bind.identity,
    CREATOR: await stack.identityFor('creator', 'someone'),
    SERVICE: await stack.identityFor('service', 'control'),
  };
  const noMessage = [Buffer.alloc(9, 0xff), Buffer.from([0x0a, 0xff, 0xff, 0xff, 0xff, 0x7f])];
  for (const [path, allowed] of Object.entries(methodCallers)) {
    const plane = path.startsWith('/wheelhouse.data.') ? 'data' : 'authority';
    const identity = path.endsWith('/Resolve')
      ? readIdentity(stack.stateDir, 'service', 'data.local')
      : callers[allowed[0]!];
    using connection = await RawConnection.open(stack.endpoints[plane], identity);
    for (const bytes of noMessage) {
      expect(`${path}: ${nameOf(await connection.ask(path, bytes))}`).toBe(`${path}: INTERNAL`);
    }
    const call = connection.call(path, { 'content-type': 'text/plain' });
    expect(nameOf(await finished(call))).toBe('lost');
    const hasty = connection.call(path, { 'grpc-timeout': 'soon' });
    expect(nameOf(await finished(hasty))).toBe('INTERNAL');
  }
  for (const plane of ['data', 'authority'] as const) {
    for (const bytes of [
      'GET / HTTP/1.1\r\n\r\n',
      randomBytes(4_096),
      'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n',
    ]) {
      await throwAt(stack.endpoints[plane], bytes);
    }
    const operator = callers.HUMAN_CONTROL;
    using connection = await RawConnection.open(stack.endpoints[plane], operator);
    expect(nameOf(await connection.ask('/wheelhouse.data.v1.DataService/Nothing'))).toBe(
      'UNIMPLEMENTED',
    );
    expect(nameOf(await connection.ask('/'))).toBe('UNIMPLEMENTED');
  }
  await stillServes(room, run);
}

/** Writes bytes to a port in the clear and waits until the other side is done with them. */
async function throwAt(endpoint: string, bytes: string | Buffer): Promise<void> {
  const [host, port] = endpoint.split(':');
  const socket = connectTcp({ host: host!, port: Number(port) });
  const closed = new Promise((resolve) => socket.once('close', resolve));
  socket
    .on('error', () => undefined)
    .resume()
    .end(bytes);
  await within('the port closes on nonsense', 10_000, closed);
}

/** A field that this build does not know, as a newer client would send it. */
function unknownField(canary: string): Buffer {
  const payload = Buffer.from(canary);
  // Field 1000, length-delimited; then field 1001, a number; then field 1002, a group of nothing.
  return Buffer.concat([
    Buffer.from([0xc2, 0x3e, payload.length]),
    payload,
    Buffer.from([0xc8, 0x3e, 0x01, 0xd3, 0x3e, 0xd4, 0x3e]),
  ]);
}

/** Ignored, and nowhere afterwards: in no answer, no store, no log, nor another's stream. */
async function unknownFields(subject: Subject): Promise<void> {
  await using stage = await Stage.open(subject);
  const { room, run, data, authority } = stage;
  const canary = `canary-${randomBytes(8).toString('hex')}`;
  const extra = unknownField(canary);
  const withExtra = (message: Uint8Array): Buffer => Buffer.concat([message, extra]);
  const opening = OpenWorkerRequest.fromPartial({ name: 'newer', workspace: room.stack.workspace });
  const answers: Buffer[] = [];

  const opened = authority.call(authorityMethod('OpenWorker'));
  opened.send(withExtra(OpenWorkerRequest.encode(opening).finish()));
  expect(nameOf(await finished(opened))).toBe('OK');
  const listed = authority.call(authorityMethod('ListWorkers'));
  listed.send(extra);
  expect(nameOf(await finished(listed))).toBe('OK');
  expect(Buffer.concat(listed.messages).toString('latin1')).toContain('newer');

  const bind = authority.call(authorityMethod('Bind'));
  await bind.heard(1);
  const renew = BindRequest.encode(
    BindRequest.fromPartial({
      operation: { $case: 'renew', value: { certificateRequest: Buffer.of(1) } },
    }),
  ).finish();
  bind.send(withExtra(renew));
  await bind.heard(2);

  // Inside the operation, beside it, and instead of it.
  const look = data.call(present);
  look.send(nestedIn(presentOpen(room.worker), extra));
  await look.heard(1);
  look.send(withExtra(outputAck(0n)));
  look.send(extra);
  await run.possession.write(Buffer.from('seen\n'));
  const { event } = PresentResponse.decode(await look.heard(2));
  expect(event?.$case === 'output' && event.value.payload.toString()).toBe('seen\n');
  expect(nameOf(await finished(look))).toBe('OK');

  using seat = await stage.seats('other');
  const run2 = seat.data.call(possess);
  run2.send(nestedIn(possessOpen(seat.worker, { argv: ['sh', '-c', 'env; cat'] }), extra));
  await run2.heard(2);
  run2.send(extra);
  const resize = { request: 1n, geometry: { rows: 0, cols: 0 } };
  run2.send(
    withExtra(PossessRequest.encode({ operation: { $case: 'resize', value: resize } }).finish()),
  );
  await run2.heard(3);
  run2.cancel();

  answers.push(...[opened, listed, bind, look, run2].flatMap(({ messages }) => messages));
  expect(Buffer.concat(answers).includes(canary)).toBe(false);
  expect(run.received.text).not.toContain(canary);
  expect(everythingKept(room.stack)).not.toContain(canary);
  bind.cancel();
  await stillServes(room, run);
}

/** Puts bytes into the one sub-message of a message, whose tag is one byte. */
function nestedIn(message: Uint8Array, extra: Uint8Array): Buffer {
  const [tag = 0] = message;
  // The length is one byte or two; what follows it is the sub-message.
  const head = message[1]! < 0x80 ? 2 : 3;
  const inner = Buffer.concat([message.subarray(head), extra]);
  return Buffer.concat([
    Buffer.from([tag, (inner.length & 0x7f) | 0x80, inner.length >> 7]),
    inner,
    extra,
  ]);
}

function everythingKept(stack: Stack): string {
  const files = readdirSync(stack.stateDir, { recursive: true, encoding: 'utf8' })
    .map((name) => join(stack.stateDir, name))
    .filter((path) => statSync(path).isFile());
  const kept = files.map((file) => readFileSync(file, 'latin1'));
  return [...kept, stack.log('authority'), stack.log('data')].join('\n');
}

describe('hostile messages', () => {
  at(ownProcesses, () => {
    test('what is too large is refused, whatever it unpacks to', () => tooLarge(product));
  });
  falsifier(
    'B5 input-atom-max',
    {
      file: 'services/data/domain/input-line.ts',
      find: 'payload.length > limits.inputAtomMax',
      replace: 'false',
    },
    tooLarge,
  );
  test('128 KiB of metadata end the connection that sent them', () => heavyMetadata(product));
  test('a refusal is told however long the name was', () => longNames(product));
  falsifier(
    'facts are cut to what a trailer holds',
    {
      file: 'services/chassis/refusal-status.ts',
      find: 'value.length <= factMax',
      replace: 'true',
    },
    longNames,
  );
  test('messages out of turn are refused or close their own stream as protocol-violation', () =>
    outOfTurn(product));
  falsifier(
    'W1 no ack beyond what was sent',
    {
      file: 'services/data/domain/send-window.ts',
      find: 'nextSeq > window.sentSeq',
      replace: 'false',
    },
    outOfTurn,
  );
  test('bytes that are no message end their call', () => malformed(product));
  test('unknown fields are ignored and never come back', () => unknownFields(product));
});
