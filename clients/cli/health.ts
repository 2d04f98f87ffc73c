/** Whether a service serves, in all its parts, and is the one it should be. */
import { Metadata, type ServiceError, status } from '@grpc/grpc-js';
import { clientCredentials, clientOptions, type ExpectedServer } from '#chassis/grpc-client.js';
import type { LoadedIdentity } from '#chassis/identity-files.js';
import {
  HealthClient,
  type HealthListResponse,
  HealthCheckResponse_ServingStatus as Status,
} from '#gen/grpc/health/v1/health.js';

const ANSWER_MS = 3_000;

export type Health = 'serving' | 'not serving' | 'unreachable';

export interface HealthReport {
  readonly health: Health;
  /** By name. Empty for a service that cannot be reached, or is too old to say. */
  readonly parts: Readonly<Record<string, 'serving' | 'not serving'>>;
}

/** Where a service is, and which it should be. */
export interface Asked extends ExpectedServer {
  readonly endpoint: string;
  readonly identity: LoadedIdentity;
}

/** Asks once, for 3 s at most. Whoever answers has shown its certificate. */
export async function healthOf(asked: Asked): Promise<HealthReport> {
  using client = dial(asked);
  const answer = await list(client);
  if (answer === undefined) {
    return { health: 'unreachable', parts: {} };
  }
  const { '': whole, ...others } = answer;
  const parts = Object.entries(others)
    .filter(([name]) => !name.startsWith('wheelhouse.'))
    .map(([name, found]) => [name, wordOf(found.status)] as const);
  return { health: wordOf(whole?.status ?? Status.SERVING), parts: Object.fromEntries(parts) };
}

/** Whether the service serves within that time, milliseconds. */
export async function serves(asked: Asked, withinMs: number): Promise<boolean> {
  using client = dial(asked);
  const call = client.watch({ service: '' }, { deadline: Date.now() + withinMs });
  return await new Promise((resolve) => {
    call.on('data', (response: { status: Status }) => {
      if (response.status === Status.SERVING) {
        resolve(true);
        call.cancel();
      }
    });
    call.on('error', () => resolve(false));
    call.on('end', () => resolve(false));
  });
}

function dial({ endpoint, identity, plane }: Asked): HealthClient & Disposable {
  const credentials = clientCredentials(identity.identity, identity.rootPem, { plane });
  const client = new HealthClient(endpoint, credentials, clientOptions);
  return Object.assign(client, { [Symbol.dispose]: () => client.close() });
}

function list(client: HealthClient): Promise<HealthListResponse['statuses'] | undefined> {
  const deadline = Date.now() + ANSWER_MS;
  return new Promise((resolve) => {
    client.list({}, new Metadata(), { deadline }, (error, response) =>
      resolve(error === null ? response.statuses : withoutHealth(error)),
    );
  });
}

/** A service without the call has answered: as far as it can say, it serves. */
function withoutHealth(error: ServiceError): HealthListResponse['statuses'] | undefined {
  return error.code === status.UNIMPLEMENTED ? {} : undefined;
}

function wordOf(found: Status): 'serving' | 'not serving' {
  return found === Status.SERVING ? 'serving' : 'not serving';
}

/** What it means for people that a part does not serve (docs/protocol.md, health). */
const MEANINGS: Readonly<Record<string, string>> = {
  journal: 'its disk is full or nearly so: nothing new begins; what runs goes on, closing works',
  bus: 'the broker is away: what others follow reaches them a little later',
  'authority-link': 'authority does not answer it: looking and running are refused until it does',
  terminals: 'it carries as many terminals as it may: no more are started',
};

/** The parts that do not serve, each with what that means. */
export function troubles({ parts }: HealthReport): readonly (readonly [string, string])[] {
  return Object.entries(parts)
    .filter(([, found]) => found === 'not serving')
    .map(([name]) => [name, MEANINGS[name] ?? 'a part that this command does not know'] as const);
}
