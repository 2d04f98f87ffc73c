/** What every server of ours exposes beside its own services: whether it is well, and what may be called. */
import type { Exposed } from './grpc-server.js';
import type { Health } from './health.js';
import { healthService } from './health-service.js';
import { reflectionServices } from './reflection-service.js';

export interface StandardServices {
  readonly health: Health;
  /** 1 to describe the contract to whoever has an identity, 0 not to. */
  readonly reflection: number;
}

/** The services as they are, then gRPC's own. */
export function withStandardServices(
  exposed: readonly Exposed[],
  { health, reflection }: StandardServices,
): readonly Exposed[] {
  const well = [...exposed, healthService(health, exposed.map(serviceNameOf))];
  return reflection === 0
    ? well
    : [...well, ...reflectionServices([...well.map(serviceNameOf), ...own], health.draining)];
}

const own = ['grpc.reflection.v1.ServerReflection', 'grpc.reflection.v1alpha.ServerReflection'];

/** The full name of a gRPC service, as its paths have it. */
function serviceNameOf({ definition }: Exposed): string {
  const [path = ''] = Object.values(definition).map((method) => method.path);
  return path.split('/')[1] ?? '';
}
