import { expect, test } from 'vitest';
import { callerOf } from './grpc-server.js';

test('CALLER_UNIDENTIFIED: whose connection is gone, or shows no certificate, is nobody', () => {
  // What grpc-js does for a socket that was lost with calls of it still to begin.
  const lost = {
    getAuthContext: (): { sslPeerCertificate?: { raw: Buffer } } => {
      throw new TypeError("Cannot read properties of null (reading 'raw')");
    },
  };
  const bare = { getAuthContext: () => ({}) };
  for (const call of [lost, bare]) {
    expect(callerOf(call)).toMatchObject({ refusal: { reason: 'CALLER_UNIDENTIFIED' } });
  }
});
