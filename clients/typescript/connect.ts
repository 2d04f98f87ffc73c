/** How a client dials a service: as one identity, to one plane. Who answers is checked as well. */
import {
  type ClientUnaryCall,
  Metadata,
  makeGenericClientConstructor,
  type ServiceError,
} from '@grpc/grpc-js';
import { clientCredentials, clientOptions } from '#chassis/grpc-client.js';
import type { LoadedIdentity } from '#chassis/identity-files.js';
import { AuthorityServiceClient } from '#gen/wheelhouse/authority/v1/authority.js';
import { DataServiceClient, DataServiceService } from '#gen/wheelhouse/data/v1/data.js';
import { callError } from './call-errors.js';
import { readPossessResponse, readPresentResponse } from './output-frame.js';

/** A channel to one service. Disposing it lets living calls end and takes no new ones. */
export interface Connection<Client> extends Disposable {
  readonly client: Client;
  /** For people: which service, and where. */
  readonly service: string;
}

export type AuthorityConnection = Connection<AuthorityServiceClient>;
export type DataConnection = Connection<DataServiceClient>;

/** A call that should answer at once but has not after this long will not. */
const ANSWER_MS = 10_000;

/** The generated client but for the output frames, which are read without a copy. */
const FrameReadingClient = makeGenericClientConstructor(
  {
    ...DataServiceService,
    possess: { ...DataServiceService.possess, responseDeserialize: readPossessResponse },
    present: { ...DataServiceService.present, responseDeserialize: readPresentResponse },
  },
  DataServiceClient.serviceName,
) as unknown as typeof DataServiceClient;

/** Dials lazily: the first call makes the connection. `endpoint` is `host:port`. */
export function connect(
  endpoint: string,
  plane: 'authority',
  as: LoadedIdentity,
): AuthorityConnection;
export function connect(endpoint: string, plane: 'data', as: LoadedIdentity): DataConnection;
export function connect(
  endpoint: string,
  plane: 'authority' | 'data',
  as: LoadedIdentity,
): AuthorityConnection | DataConnection {
  const credentials = clientCredentials(as.identity, as.rootPem, { plane });
  const service = `${plane} at ${endpoint}`;
  if (plane === 'authority') {
    const client = new AuthorityServiceClient(endpoint, credentials, clientOptions);
    return { client, service, [Symbol.dispose]: () => client.close() };
  }
  const client = new FrameReadingClient(endpoint, credentials, clientOptions);
  return { client, service, [Symbol.dispose]: () => client.close() };
}

type Answered<Response> = (error: ServiceError | null, response: Response) => void;
type Send<Response> = (
  metadata: Metadata,
  options: { deadline: number },
  answered: Answered<Response>,
) => ClientUnaryCall;

/** Makes one unary call. Throws a `RefusedError` or an `UnreachableError`. */
export function ask<Response>(service: string, send: Send<Response>): Promise<Response> {
  return new Promise((resolve, reject) => {
    send(new Metadata(), { deadline: Date.now() + ANSWER_MS }, (error, response) => {
      if (error === null) {
        resolve(response);
      } else {
        reject(callError(error, service));
      }
    });
  });
}
