/** The RPC table of the data plane. */
import type { UntypedServiceImplementation } from '@grpc/grpc-js';
import type { Exposed } from '#chassis/grpc-server.js';
import { DataServiceService } from '#gen/wheelhouse/data/v1/data.js';
import { serializePossessResponse, serializePresentResponse } from './adapters/output-frame.js';
import type { Node } from './node.js';
import { followStatus } from './rpc/follow-status.js';
import { possess } from './rpc/possess.js';
import { present } from './rpc/present.js';

/** As generated, but output frames serialise themselves. */
const definition = {
  ...DataServiceService,
  possess: { ...DataServiceService.possess, responseSerialize: serializePossessResponse },
  present: { ...DataServiceService.present, responseSerialize: serializePresentResponse },
};

export function dataService(node: Node): Exposed {
  const implementation: UntypedServiceImplementation = {
    possess: possess(node),
    present: present(node),
    followStatus: followStatus(node),
  };
  return { definition, implementation };
}
