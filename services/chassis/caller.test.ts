import { X509Certificate } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { identify, isName, uriOf } from './caller.js';
import { CertificateAuthority, mintAuthority, type Subject } from './certificates.js';

const nowMs = Date.now();

async function certified(subject: Omit<Subject, 'notAfterMs'>): Promise<Uint8Array> {
  const ca = await CertificateAuthority.load(await mintAuthority(nowMs));
  const { certificatePem } = await ca.mint({ ...subject, notAfterMs: nowMs + 60_000 }, nowMs);
  return new X509Certificate(certificatePem).raw;
}

describe('who is calling', () => {
  test.each([
    [{ role: 'human-control', name: 'ada' }],
    [{ role: 'agent', name: 'builder-7' }],
    [{ role: 'creator', name: 'ada' }],
    [{ role: 'service', name: 'authority' }],
    [{ role: 'service', name: 'data', node: 'local' }],
  ] as const)('is read from the one URI: %o', async (subject) => {
    expect(identify(await certified(subject))).toMatchObject({ kind: 'granted', value: subject });
  });

  test.each([
    ['a name that is none', { role: 'agent', name: 'A/B' }],
    ['a node that is not a service’s', { role: 'agent', name: 'demo', node: 'local' }],
    ['a role nobody has', { role: 'root' as 'agent', name: 'demo' }],
  ] as const)('%s is refused CALLER_UNIDENTIFIED', async (_what, subject) => {
    expect(identify(await certified(subject))).toMatchObject({
      refusal: { reason: 'CALLER_UNIDENTIFIED' },
    });
  });

  test('bytes that are no certificate are refused CALLER_UNIDENTIFIED', () => {
    expect(identify(Uint8Array.of(1, 2, 3))).toMatchObject({
      refusal: { reason: 'CALLER_UNIDENTIFIED' },
    });
  });

  test('a service is also known to those who go by host names, nobody else is', async () => {
    const namesOf = async (subject: Omit<Subject, 'notAfterMs'>) =>
      new X509Certificate(await certified(subject)).subjectAltName;
    expect(await namesOf({ role: 'service', name: 'data', node: 'local' })).toBe(
      'URI:spiffe://wheelhouse/service/data/local, DNS:data.wheelhouse.internal',
    );
    expect(await namesOf({ role: 'human-control', name: 'ada' })).toBe(
      'URI:spiffe://wheelhouse/human-control/ada',
    );
  });

  test('the same bytes say the same, other bytes their own', async () => {
    const ada = await certified({ role: 'human-control', name: 'ada' });
    const bob = await certified({ role: 'human-control', name: 'bob' });
    expect(identify(ada)).toEqual(identify(Uint8Array.from(ada)));
    expect(identify(bob)).toMatchObject({ value: { name: 'bob' } });
    expect(identify(ada)).toMatchObject({ value: { name: 'ada' } });
  });
});

test('names and URIs have one form', () => {
  expect(['a', 'a.b_c-1', `a${'b'.repeat(62)}`].every(isName)).toBe(true);
  expect(['', 'A', '-a', 'a b', 'ä', 'a/b', `a${'b'.repeat(63)}`, 'a\n'].some(isName)).toBe(false);
  expect(uriOf('service', 'data', 'local')).toBe('spiffe://wheelhouse/service/data/local');
});
