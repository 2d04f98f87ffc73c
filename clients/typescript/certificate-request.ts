/** Makes keys and requests. What makes them takes 0.1 s to load and few commands need it, so it comes late. */
import type { CertificateRequest } from '#chassis/certificates.js';

export async function newRequest(): Promise<CertificateRequest> {
  const { requestCertificate } = await import('#chassis/certificates.js');
  return await requestCertificate();
}
