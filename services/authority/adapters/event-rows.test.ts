import { describe, expect, test } from 'vitest';
import { epoch, generation, ref } from '#kernel/refs.js';
import type { WorldEvent } from '../domain/world.js';
import { decodeEvent, type EventKind, encodeEvent } from './event-rows.js';

const workerRef = ref<never>('wk_1');

/** One of each kind; `Record` without `Partial`, so that a new kind does not compile without its row. */
const samples: {
  readonly [Kind in EventKind]: Extract<WorldEvent, { readonly kind: Kind }>;
} = {
  'world-started': {
    kind: 'world-started',
    worldIncarnation: ref('wd_1'),
    worldGeneration: generation(3n),
  },
  'worker-opened': {
    kind: 'worker-opened',
    workerRef,
    locusRef: ref('lc_1'),
    name: 'demo',
    actor: 'demo',
    openedBy: 'ada',
    workspace: '/work/é"\\',
    node: 'local',
    driveAllowed: true,
    delegationAllowed: false,
  },
  'worker-closing': { kind: 'worker-closing', workerRef, closedBy: 'ada' },
  'worker-closed': { kind: 'worker-closed', workerRef },
  'worker-reopened': { kind: 'worker-reopened', workerRef, workerGeneration: generation(2n) },
  occupied: {
    kind: 'occupied',
    workerRef,
    peerRef: ref('pr_1'),
    lineage: ref('aa'),
    carrierRef: ref('cr_1'),
    carrierEpoch: epoch(1n),
  },
  reoccupied: {
    kind: 'reoccupied',
    workerRef,
    peerRef: ref('pr_2'),
    carrierEpoch: epoch(2n),
    attachmentEpoch: epoch(2n ** 63n),
  },
  vacated: { kind: 'vacated', workerRef, reason: 'owner-lost' },
  'attachment-reserved': {
    kind: 'attachment-reserved',
    workerRef,
    attachmentRef: ref('at_1'),
    attachmentEpoch: epoch(1n),
    ptyEpoch: epoch(1n),
    dataIncarnation: ref('dn_1'),
  },
  'attachment-active': { kind: 'attachment-active', workerRef, attachmentRef: ref('at_1') },
  'attachment-released': { kind: 'attachment-released', workerRef, attachmentRef: ref('at_1') },
  'agent-certificate-issued': {
    kind: 'agent-certificate-issued',
    actor: 'demo',
    purpose: 'identity',
    fingerprint: 'bb',
    notAfterMs: 1_796_000_000_000,
  },
  'certificate-renewed': {
    kind: 'certificate-renewed',
    role: 'agent',
    name: 'demo',
    fingerprint: 'cc',
    lineage: ref('aa'),
    notAfterMs: 1_796_000_000_000,
    issuedAtMs: 1_795_000_000_000,
  },
  'control-bound': { kind: 'control-bound', operator: 'ada', peerRef: ref('pr_3') },
};

describe('an event in the journal', () => {
  test.each(Object.values(samples))('$kind is read as it was written', (event) => {
    expect(decodeEvent(event.kind, encodeEvent(event, {}))).toEqual(event);
  });

  test('of an occupant that had no terminal has no epoch of one', () => {
    const event = { ...samples.reoccupied, attachmentEpoch: undefined };
    expect(decodeEvent('reoccupied', encodeEvent(event, {}))).toEqual(event);
  });

  test('is canonical: keys sorted, counters as decimal strings, nothing twice', () => {
    expect(encodeEvent(samples.reoccupied, {})).toBe(
      '{"attachmentEpoch":"9223372036854775808","carrierEpoch":"2","peerRef":"pr_2","workerRef":"wk_1"}',
    );
  });

  test('tolerates fields that a later version added', () => {
    const body = encodeEvent(samples['worker-closed'], { laterField: 'x' });
    expect(decodeEvent('worker-closed', body)).toEqual(samples['worker-closed']);
  });

  test('of a kind this build does not know stops it', () => {
    expect(() => decodeEvent('worker-promoted', '{}')).toThrow('worker-promoted');
    expect(() => decodeEvent('toString', '{}')).toThrow('toString');
  });

  test.each([
    ['worker-closed', '{}', 'workerRef'],
    ['worker-closed', '{"workerRef":7}', 'workerRef'],
    ['worker-reopened', '{"workerRef":"wk_1","workerGeneration":"-1"}', 'workerGeneration'],
    ['worker-reopened', '{"workerRef":"wk_1","workerGeneration":2}', 'workerGeneration'],
    ['vacated', '{"workerRef":"wk_1","reason":"boredom"}', 'reason'],
    ['control-bound', 'null', 'operator'],
  ])('%s with the body %s stops it, naming the field', (kind, body, field) => {
    expect(() => decodeEvent(kind, body)).toThrow(field);
  });
});
