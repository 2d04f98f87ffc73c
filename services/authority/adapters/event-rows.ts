/**
 * Events as the journal stores them: canonical JSON, keys sorted, counters as decimal strings.
 *
 * Reading tolerates fields it does not know, so that an older build reads a newer journal's known
 * kinds; a kind it does not know stops it, because a fold with a hole in it decides wrongly.
 */
import { Fault } from '#chassis/fault.js';
import { type Epoch, epoch, type Generation, generation, ref } from '#kernel/refs.js';
import type { VacateReason, WorldEvent } from '../domain/world.js';

export type EventKind = WorldEvent['kind'];

/** The encoded body of an event, with what only the journal knows added to it. */
export function encodeEvent(event: WorldEvent, added: Readonly<Record<string, string>>): string {
  const { kind: _kind, ...fields } = event;
  const sorted = Object.entries({ ...fields, ...added })
    .filter(([, value]) => value !== undefined)
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([key, value]) => [key, typeof value === 'bigint' ? String(value) : value]);
  return JSON.stringify(Object.fromEntries(sorted));
}

/** Reads a stored event. Throws a `Fault` for a kind or a body that is not one. */
export function decodeEvent(kind: string, body: string): WorldEvent {
  const read = Object.hasOwn(readers, kind) ? readers[kind as EventKind] : undefined;
  if (read === undefined) {
    throw new Fault(`the journal holds an event of a kind this build does not know: ${kind}`);
  }
  return read(new Fields(kind, JSON.parse(body)));
}

/** A stored body whose fields are checked as they are taken. */
class Fields {
  readonly #kind: string;
  readonly #body: Readonly<Record<string, unknown>>;

  constructor(kind: string, body: unknown) {
    this.#kind = kind;
    this.#body = Object(body);
  }

  text(key: string): string {
    const value = this.#body[key];
    return typeof value === 'string' ? value : this.#missing(key);
  }

  ref<Ref extends Parameters<typeof ref>[0] & ReturnType<typeof ref>>(key: string): Ref {
    return ref<Ref>(this.text(key));
  }

  flag(key: string): boolean {
    const value = this.#body[key];
    return typeof value === 'boolean' ? value : this.#missing(key);
  }

  number(key: string): number {
    const value = this.#body[key];
    return typeof value === 'number' ? value : this.#missing(key);
  }

  generation(key: string): Generation {
    return generation(this.#counter(key));
  }

  epoch(key: string): Epoch {
    return epoch(this.#counter(key));
  }

  has(key: string): boolean {
    return this.#body[key] !== undefined;
  }

  #counter(key: string): bigint {
    const value = this.text(key);
    return /^\d{1,20}$/.test(value) ? BigInt(value) : this.#missing(key);
  }

  #missing(key: string): never {
    throw new Fault(`the journal's ${this.#kind} has no readable ${key}`);
  }
}

type Readers = {
  readonly [Kind in EventKind]: (fields: Fields) => Extract<WorldEvent, { readonly kind: Kind }>;
};

const readers: Readers = {
  'world-started': (fields) => ({
    kind: 'world-started',
    worldIncarnation: fields.ref('worldIncarnation'),
    worldGeneration: fields.generation('worldGeneration'),
  }),
  'worker-opened': (fields) => ({
    kind: 'worker-opened',
    workerRef: fields.ref('workerRef'),
    locusRef: fields.ref('locusRef'),
    name: fields.text('name'),
    actor: fields.text('actor'),
    openedBy: fields.text('openedBy'),
    workspace: fields.text('workspace'),
    node: fields.text('node'),
    driveAllowed: fields.flag('driveAllowed'),
    delegationAllowed: fields.flag('delegationAllowed'),
  }),
  'worker-closing': (fields) => ({
    kind: 'worker-closing',
    workerRef: fields.ref('workerRef'),
    closedBy: fields.text('closedBy'),
  }),
  'worker-closed': (fields) => ({ kind: 'worker-closed', workerRef: fields.ref('workerRef') }),
  'worker-reopened': (fields) => ({
    kind: 'worker-reopened',
    workerRef: fields.ref('workerRef'),
    workerGeneration: fields.generation('workerGeneration'),
  }),
  occupied: (fields) => ({
    kind: 'occupied',
    workerRef: fields.ref('workerRef'),
    peerRef: fields.ref('peerRef'),
    lineage: fields.ref('lineage'),
    carrierRef: fields.ref('carrierRef'),
    carrierEpoch: fields.epoch('carrierEpoch'),
  }),
  reoccupied: (fields) => ({
    kind: 'reoccupied',
    workerRef: fields.ref('workerRef'),
    peerRef: fields.ref('peerRef'),
    carrierEpoch: fields.epoch('carrierEpoch'),
    attachmentEpoch: fields.has('attachmentEpoch') ? fields.epoch('attachmentEpoch') : undefined,
  }),
  vacated: (fields) => ({
    kind: 'vacated',
    workerRef: fields.ref('workerRef'),
    reason: vacateReason(fields.text('reason')),
  }),
  'attachment-reserved': (fields) => ({
    kind: 'attachment-reserved',
    workerRef: fields.ref('workerRef'),
    attachmentRef: fields.ref('attachmentRef'),
    attachmentEpoch: fields.epoch('attachmentEpoch'),
    ptyEpoch: fields.epoch('ptyEpoch'),
    dataIncarnation: fields.ref('dataIncarnation'),
  }),
  'attachment-active': (fields) => ({
    kind: 'attachment-active',
    workerRef: fields.ref('workerRef'),
    attachmentRef: fields.ref('attachmentRef'),
  }),
  'attachment-released': (fields) => ({
    kind: 'attachment-released',
    workerRef: fields.ref('workerRef'),
    attachmentRef: fields.ref('attachmentRef'),
  }),
  'agent-certificate-issued': (fields) => ({
    kind: 'agent-certificate-issued',
    actor: fields.text('actor'),
    purpose: fields.text('purpose') === 'identity' ? 'identity' : 'run',
    fingerprint: fields.text('fingerprint'),
    notAfterMs: fields.number('notAfterMs'),
  }),
  'certificate-renewed': (fields) => ({
    kind: 'certificate-renewed',
    role: fields.text('role'),
    name: fields.text('name'),
    fingerprint: fields.text('fingerprint'),
    lineage: fields.ref('lineage'),
    notAfterMs: fields.number('notAfterMs'),
    issuedAtMs: fields.number('issuedAtMs'),
  }),
  'control-bound': (fields) => ({
    kind: 'control-bound',
    operator: fields.text('operator'),
    peerRef: fields.ref('peerRef'),
  }),
};

function vacateReason(word: string): VacateReason {
  switch (word) {
    case 'agent-unbound':
    case 'owner-lost':
    case 'worker-closed':
      return word;
    default:
      throw new Fault(`the journal's vacated has no readable reason: ${word}`);
  }
}
