/**
 * The certificate authority: mints identities and answers certificate requests.
 *
 * ECDSA P-256 throughout. Keys of agents and operators never come here: they send requests.
 */
import 'reflect-metadata';
import { createPrivateKey, randomBytes, webcrypto } from 'node:crypto';
import * as x509 from '@peculiar/x509';
import { granted, type Outcome, refused } from '#kernel/outcome.js';
import { type CallerRole, uriOf } from './caller.js';

x509.cryptoProvider.set(webcrypto);

const ALGORITHM = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' } as const;
/** Clocks of two machines may differ; a certificate that begins now would be refused by the slower one. */
const BACKDATE_MS = 5 * 60_000;
const CA_LIFE_MS = 10 * 365 * 86_400_000;

/** A certificate with its private key, both PEM. */
export interface KeyedCertificate {
  readonly certificatePem: string;
  readonly keyPem: string;
}

/** What to certify. */
export interface Subject {
  readonly role: CallerRole;
  readonly name: string;
  readonly node?: string;
  readonly notAfterMs: number;
}

/** A key of the client's own, and the request that proves it has it. */
export interface CertificateRequest {
  /** PKCS #10, DER. */
  readonly request: Uint8Array;
  readonly keyPem: string;
}

/** Makes the root of trust of one deployment. */
export async function mintAuthority(nowMs: number): Promise<KeyedCertificate> {
  const keys = await newKeys();
  const certificate = await x509.X509CertificateGenerator.createSelfSigned({
    serialNumber: newSerial(),
    name: 'CN=wheelhouse',
    notBefore: new Date(nowMs - BACKDATE_MS),
    notAfter: new Date(nowMs + CA_LIFE_MS),
    signingAlgorithm: ALGORITHM,
    keys,
    extensions: [
      new x509.BasicConstraintsExtension(true, 0, true),
      new x509.KeyUsagesExtension(
        x509.KeyUsageFlags.keyCertSign | x509.KeyUsageFlags.cRLSign,
        true,
      ),
    ],
  });
  return { certificatePem: certificate.toString('pem'), keyPem: await exportKey(keys) };
}

/** Signs for the deployment's root. */
export class CertificateAuthority {
  /** The root's certificate, PEM. */
  readonly certificatePem: string;
  readonly #root: x509.X509Certificate;
  readonly #key: webcrypto.CryptoKey;

  private constructor(certificatePem: string, key: webcrypto.CryptoKey) {
    this.certificatePem = certificatePem;
    this.#root = new x509.X509Certificate(certificatePem);
    this.#key = key;
  }

  static async load(keyed: KeyedCertificate): Promise<CertificateAuthority> {
    const pkcs8 = createPrivateKey(keyed.keyPem).export({ type: 'pkcs8', format: 'der' });
    const key = await webcrypto.subtle.importKey('pkcs8', pkcs8, ALGORITHM, false, ['sign']);
    return new CertificateAuthority(keyed.certificatePem, key);
  }

  /** Certifies the key of a request. Refuses CERTIFICATE_REQUEST_INVALID. The request's own subject is ignored. */
  async answer(request: Uint8Array, subject: Subject, nowMs: number): Promise<Outcome<string>> {
    const publicKey = await provenKey(request);
    if (publicKey === undefined) {
      return refused('CERTIFICATE_REQUEST_INVALID');
    }
    return granted(await this.sign(publicKey, subject, nowMs));
  }

  /** Makes a key and its certificate: for the services' and the first operator's identities only. */
  async mint(subject: Subject, nowMs: number): Promise<KeyedCertificate> {
    const keys = await newKeys();
    const publicKey = new x509.PublicKey(await webcrypto.subtle.exportKey('spki', keys.publicKey));
    return {
      certificatePem: await this.sign(publicKey, subject, nowMs),
      keyPem: await exportKey(keys),
    };
  }

  private async sign(publicKey: x509.PublicKey, subject: Subject, nowMs: number): Promise<string> {
    const usages: string[] = [x509.ExtendedKeyUsage.clientAuth];
    if (subject.role === 'service') {
      usages.push(x509.ExtendedKeyUsage.serverAuth);
    }
    const uri = uriOf(subject.role, subject.name, subject.node);
    const certificate = await x509.X509CertificateGenerator.create({
      serialNumber: newSerial(),
      subject: `CN=${subject.name}`,
      issuer: this.#root.subject,
      notBefore: new Date(nowMs - BACKDATE_MS),
      notAfter: new Date(subject.notAfterMs),
      signingAlgorithm: ALGORITHM,
      publicKey,
      signingKey: this.#key,
      extensions: [
        new x509.BasicConstraintsExtension(false, undefined, true),
        new x509.KeyUsagesExtension(x509.KeyUsageFlags.digitalSignature, true),
        new x509.ExtendedKeyUsageExtension(usages, false),
        new x509.SubjectAlternativeNameExtension(
          [{ type: 'url', value: uri }, ...serverNames(subject)],
          true,
        ),
      ],
    });
    return certificate.toString('pem');
  }
}

/**
 * What a client that knows host names only is to expect of a service: `<plane>.wheelhouse.internal`,
 * whatever address it dials. The name says which service answers and, as the URI does, nothing else.
 */
function serverNames({ role, name }: Subject): x509.JsonGeneralName[] {
  return role === 'service' ? [{ type: 'dns', value: `${name}.wheelhouse.internal` }] : [];
}

/** Makes a key and a request for a certificate on it. */
export async function requestCertificate(): Promise<CertificateRequest> {
  const keys = await newKeys();
  const request = await x509.Pkcs10CertificateRequestGenerator.create({
    name: 'CN=wheelhouse',
    keys,
    signingAlgorithm: ALGORITHM,
  });
  return { request: new Uint8Array(request.rawData), keyPem: await exportKey(keys) };
}

/** The key of a request whose own signature proves possession; undefined for anything else. */
async function provenKey(request: Uint8Array): Promise<x509.PublicKey | undefined> {
  try {
    const parsed = new x509.Pkcs10CertificateRequest(new Uint8Array(request).buffer);
    const algorithm = parsed.publicKey.algorithm as webcrypto.EcKeyAlgorithm;
    const isSuitable = algorithm.name === 'ECDSA' && algorithm.namedCurve === 'P-256';
    return isSuitable && (await parsed.verify()) ? parsed.publicKey : undefined;
  } catch {
    return undefined;
  }
}

async function newKeys(): Promise<webcrypto.CryptoKeyPair> {
  const keys = await webcrypto.subtle.generateKey(ALGORITHM, true, ['sign', 'verify']);
  return keys as webcrypto.CryptoKeyPair;
}

async function exportKey(keys: webcrypto.CryptoKeyPair): Promise<string> {
  const pkcs8 = await webcrypto.subtle.exportKey('pkcs8', keys.privateKey);
  return x509.PemConverter.encode(pkcs8, 'PRIVATE KEY');
}

/** Positive and 127 bits, as X.509 wants it. */
function newSerial(): string {
  const bytes = randomBytes(16);
  bytes[0] = ((bytes[0] ?? 0) & 0x7f) | 0x40;
  return bytes.toString('hex');
}
