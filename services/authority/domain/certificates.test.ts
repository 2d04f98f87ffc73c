import { describe, expect, test } from 'vitest';
import { type Lineage, ref } from '#kernel/refs.js';
import type { IssueIdentity, IssueRunCertificate, Renew } from './command.js';
import {
  ada,
  asker,
  bob,
  commands,
  demo,
  endMs,
  History,
  low,
  opened,
  reasonOf,
  roomy,
} from './history.js';
import {
  keepRenewal,
  lineageOf,
  newestEndOf,
  noRenewals,
  type Renewal,
  type Renewals,
  renewalsMax,
  renewalsPerQuarterMax,
} from './renewals.js';

const issued = { fingerprint: 'renewed-certificate', notAfterMs: endMs * 2 };
const renew = (given: Partial<Renew> = {}): Renew => ({
  kind: 'renew',
  asker: ada,
  issued,
  ...given,
});
const issueIdentity = (given: Partial<IssueIdentity> = {}): IssueIdentity => ({
  kind: 'issue-identity',
  asker: ada,
  actor: 'demo',
  issued,
  ...given,
});
const issueRun: IssueRunCertificate = { kind: 'issue-run-certificate', asker: demo, issued };

describe('renewing', () => {
  test('journals the lineage and lets the peer live on', () => {
    const history = new History().after(commands.bind());
    expect(history.decide(renew(), { ...low, nowMs: 10 })).toMatchObject({
      value: {
        events: [
          {
            kind: 'certificate-renewed',
            role: 'human-control',
            name: 'ada',
            fingerprint: 'renewed-certificate',
            lineage: ada.lineage,
            notAfterMs: endMs * 2,
            issuedAtMs: 10,
          },
        ],
      },
    });
    expect(history.state.presence.peers.get(ada.lineage)?.notAfterMs).toBe(endMs * 2);
    expect(lineageOf(history.state.world.renewals, 'renewed-certificate')).toBe(ada.lineage);
  });

  test('never shortens a life', () => {
    const history = new History().after(commands.bind());
    history.after(renew({ issued: { fingerprint: 'short', notAfterMs: 5 } }));
    expect(history.state.presence.peers.get(ada.lineage)?.notAfterMs).toBe(endMs);
  });

  test('refuses what comes too often, until a quarter of a life has passed', () => {
    const history = new History().after(commands.bind());
    const renewal = (count: number): Renew =>
      renew({ issued: { fingerprint: `renewed-${count}`, notAfterMs: endMs } });
    for (let count = 0; count < renewalsPerQuarterMax; count += 1) {
      history.after(renewal(count));
    }
    const early = { ...low, nowMs: endMs / 5 - 1 };
    expect(history.decide(renewal(99), early)).toMatchObject({
      refusal: { reason: 'REQUEST_INVALID', facts: { field: 'renew' } },
    });
    const due = { ...low, nowMs: endMs / 5 };
    expect(reasonOf(history.decide(renewal(99), due))).toBe('granted');
    history.after(commands.bind({ asker: demo }));
    expect(reasonOf(history.decide(renew({ asker: demo }), early))).toBe('granted');
  });

  test('refuses a peer that has ended', () => {
    expect(reasonOf(new History().decide(renew()))).toBe('CONTROL_CHANNEL_NOT_BOUND');
    expect(reasonOf(new History().decide(renew({ asker: demo })))).toBe('AGENT_CHANNEL_NOT_BOUND');
    const history = new History().after(commands.bind());
    expect(reasonOf(history.decide(renew(), { ...roomy, nowMs: endMs }))).toBe(
      'CERTIFICATE_EXPIRED',
    );
  });
});

describe('issuing', () => {
  test('an operator has the identity of an actor that its workers are for', () => {
    expect(opened().decide(issueIdentity())).toMatchObject({
      value: { events: [{ kind: 'agent-certificate-issued', actor: 'demo', purpose: 'identity' }] },
    });
  });

  test('another operator has not, nor for an actor without a worker', () => {
    const history = opened();
    expect(history.decide(issueIdentity({ actor: 'nobody' }))).toMatchObject({
      refusal: { reason: 'ACTOR_WITHOUT_WORKER', facts: { actor: 'nobody' } },
    });
    history.unbind(ada);
    history.after(commands.bind({ asker: bob }));
    expect(reasonOf(history.decide(issueIdentity({ asker: bob })))).toBe('ACTOR_WITHOUT_WORKER');
  });

  test('an operator without a Bind has none', () => {
    const history = opened();
    history.unbind(ada);
    expect(reasonOf(history.decide(issueIdentity()))).toBe('CONTROL_CHANNEL_NOT_BOUND');
  });

  test('an agent has a certificate for a run without a Bind', () => {
    expect(opened().decide(issueRun)).toMatchObject({
      value: { events: [{ kind: 'agent-certificate-issued', actor: 'demo', purpose: 'run' }] },
    });
  });

  test('is refused on a nearly full disk', () => {
    expect(reasonOf(opened().decide(issueIdentity(), low))).toBe('JOURNAL_FULL');
    expect(reasonOf(opened().decide(issueRun, low))).toBe('JOURNAL_FULL');
  });
});

describe('lineages', () => {
  const record = (fingerprint: string, given: Partial<Renewal> = {}): Renewal => ({
    fingerprint,
    lineage: ref('first'),
    notAfterMs: 100,
    issuedAtMs: 0,
    ...given,
  });

  function kept(...renewals: readonly Renewal[]): Renewals {
    const draft = new Map<string, Renewal>();
    for (const renewal of renewals) {
      keepRenewal(draft, renewal);
    }
    return draft;
  }

  const many = (count: number, given: Partial<Renewal> = {}): Renewal[] =>
    Array.from({ length: count }, (_, index) => record(`many-${index}`, given));

  test('a certificate that nobody renewed is its own', () => {
    expect(lineageOf(noRenewals, 'alone')).toBe('alone');
    expect(newestEndOf(noRenewals, ref('alone'))).toBe(0);
  });

  test('a renewed one continues the first, and the newest end counts', () => {
    const renewals = kept(record('a'), record('b', { notAfterMs: 300, issuedAtMs: 90 }));
    expect(lineageOf(renewals, 'a')).toBe('first');
    expect(newestEndOf(renewals, ref('first'))).toBe(300);
  });

  test('are bounded: what has ended goes, an ended certificate of a living lineage does not', () => {
    const lineage = ref<Lineage>('second');
    const renewals = kept(
      record('older', { lineage, notAfterMs: 50 }),
      record('newer', { lineage, notAfterMs: 900 }),
      ...many(renewalsMax - 2),
      record('newest', { lineage, issuedAtMs: 100, notAfterMs: 950 }),
    );
    expect([...renewals.keys()]).toEqual(['older', 'newer', 'newest']);
  });

  test('are bounded: one that renews in a loop gives up its own oldest, not another’s', () => {
    const victim = record('victim', { lineage: ref('victim') });
    const renewals = kept(victim, ...many(renewalsMax));
    expect(renewals.size).toBe((renewalsMax * 3) / 4);
    expect(lineageOf(renewals, 'victim')).toBe('victim');
    expect(renewals.has('many-0')).toBe(false);
    expect(renewals.has(`many-${renewalsMax - 1}`)).toBe(true);
  });

  test('are bounded: of more lineages than fit, the oldest go', () => {
    const each = Array.from({ length: renewalsMax + 1 }, (_, index) =>
      record(`own-${index}`, { lineage: ref(`own-${index}`) }),
    );
    const renewals = kept(...each);
    expect(renewals.size).toBe((renewalsMax * 3) / 4);
    expect(renewals.has('own-0')).toBe(false);
    expect(renewals.has(`own-${renewalsMax}`)).toBe(true);
  });

  test('are bounded: when all still live, the oldest quarter goes', () => {
    const renewals = kept(...many(renewalsMax), record('newest'));
    expect(renewals.size).toBe((renewalsMax * 3) / 4);
    expect(renewals.has('many-0')).toBe(false);
    expect(renewals.has('newest')).toBe(true);
  });

  test('a certificate of a role that has no peer is bound to nothing', () => {
    const history = new History();
    const creator = asker('creator', 'ada');
    expect(reasonOf(history.decide(commands.bind({ asker: creator })))).toBe('ROLE_NOT_AGENT');
  });
});
