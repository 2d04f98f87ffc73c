/** How anything of ours dials a service: mTLS both ways, keepalive, no retries. */
import type { PeerCertificate } from 'node:tls';
import { ChannelCredentials, type ChannelOptions } from '@grpc/grpc-js';
import { uriOf } from './caller.js';
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
};

/** Credentials that present an identity and accept only the expected service. */
export function clientCredentials(
  identity: KeyedCertificate,
  rootPem: string,
  expected: ExpectedServer,
): ChannelCredentials {
  return ChannelCredentials.createSsl(
    Buffer.from(rootPem),
    Buffer.from(identity.keyPem),
    Buffer.from(identity.certificatePem),
    { checkServerIdentity: (_host, certificate) => checkService(certificate, expected) },
  );
}

function checkService(certificate: PeerCertificate, expected: ExpectedServer): Error | undefined {
  const uri = `URI:${uriOf('service', expected.plane)}`;
  const names = (certificate.subjectaltname ?? '').split(', ');
  const isExpected = names.some((name) => name === uri || name.startsWith(`${uri}/`));
  return isExpected
    ? undefined
    : new Error(`the server is ${names.join(', ')}, not the ${expected.plane} service`);
}
