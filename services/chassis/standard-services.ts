/** What every server of ours exposes beside its own services: whether it is well. */
import type { Exposed } from './grpc-server.js';
import type { Health } from './health.js';
import { healthService } from './health-service.js';

/** The services as they are, then gRPC's own. */
export function withStandardServices(
  exposed: readonly Exposed[],
  health: Health,
): readonly Exposed[] {
  return [...exposed, healthService(health, exposed.map(serviceNameOf))];
}

/** The full name of a gRPC service, as its paths have it. */
function serviceNameOf({ definition }: Exposed): string {
  const [path = ''] = Object.values(definition).map((method) => method.path);
  return path.split('/')[1] ?? '';
}
