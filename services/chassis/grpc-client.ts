/** How anything of ours dials a service: mTLS both ways, keepalive, no retries. */
import { X509Certificate } from 'node:crypto';
import type { PeerCertificate } from 'node:tls';
import { ChannelCredentials, type ChannelOptions } from '@grpc/grpc-js';
import { identify, uriOf } from './caller.js';
import type { KeyedCertificate } from './certificates.js';

/** Which service is meant to answer; a certificate of anybody else is turned away. */
export interface ExpectedServer {
  readonly plane: 'authority' | 'control' | 'data' | 'provenance';
}

/**
 * Options of every client channel.
 *
 * Retries are off because a retried act is a second act. The name override only keeps an address
 * out of the TLS handshake; who answers is checked by its URI SAN.
 */
export const clientOptions: ChannelOptions = {
  'grpc.enable_retries': 0,
  'grpc.keepalive_time_ms': 10_000,
  'grpc.keepalive_timeout_ms': 5_000,
  'grpc.keepalive_permit_without_calls': 1,
  'grpc.max_receive_message_length': 4 * 1024 * 1024,
  'grpc.ssl_target_name_override': 'wheelhouse',
  'grpc.use_local_subchannel_pool': 1,
  'grpc.initial_reconnect_backoff_ms': 100,
  'grpc.max_reconnect_backoff_ms': 1_000,
  // A service that comes back elsewhere under its name is found as soon; grpc-js would wait for 30 s.
  'grpc.dns_min_time_between_resolutions_ms': 1_000,
};

/** Credentials that present an identity and accept only the expected service. */
export function clientCredentials(
  identity: KeyedCertificate,
  rootPem: string,
  expected: ExpectedServer,
): ChannelCredentials {
  return credentials(identity, rootPem, (certificate) => checkService(certificate, expected));
}

/** Credentials of a service that asks itself: whoever answers must be of its own name. */
export function ownCredentials(identity: KeyedCertificate, rootPem: string): ChannelCredentials {
  const own = nameOf(new X509Certificate(identity.certificatePem).raw);
  return credentials(identity, rootPem, ({ raw }) => {
    const found = nameOf(raw);
    return found === own ? undefined : new Error(`the server is ${found}, not ${own}`);
  });
}

function credentials(
  identity: KeyedCertificate,
  rootPem: string,
  check: (certificate: PeerCertificate) => Error | undefined,
): ChannelCredentials {
  return ChannelCredentials.createSsl(
    Buffer.from(rootPem),
    Buffer.from(identity.keyPem),
    Buffer.from(identity.certificatePem),
    { checkServerIdentity: (_host, certificate) => check(certificate) },
  );
}

function nameOf(certificate: Uint8Array): string {
  const identity = identify(certificate);
  return identity.kind === 'granted'
    ? uriOf(identity.value.role, identity.value.name, identity.value.node)
    : 'nobody';
}

function checkService(certificate: PeerCertificate, expected: ExpectedServer): Error | undefined {
  const uri = `URI:${uriOf('service', expected.plane)}`;
  const names = (certificate.subjectaltname ?? '').split(', ');
  const isExpected = names.some((name) => name === uri || name.startsWith(`${uri}/`));
  return isExpected
    ? undefined
    : new Error(`the server is ${names.join(', ')}, not the ${expected.plane} service`);
}
