/**
 * Asks a service whether it is well, as itself. For health checks of containers and supervisors.
 *
 *   node dist/services/chassis/health-probe.js HOST:PORT [--part NAME] [--as NAME]
 *
 * Exit code 0 when it is serving, 1 otherwise, with one line that says what was found. The identity is
 * the service's own, out of the folder in WHEELHOUSE_STATE: the only one there, or the one that `--as`
 * names by its file (`--as data.local`). Who answers must have the same name.
 *
 * A process of its own each time, so it loads little: about 0.15 s of one core.
 */
import { readdirSync } from 'node:fs';
import { dirname } from 'node:path';
import { parseArgs } from 'node:util';
import { Metadata, type ServiceError } from '@grpc/grpc-js';
import {
  HealthClient,
  HealthCheckResponse_ServingStatus as Status,
} from '#gen/grpc/health/v1/health.js';
import { clientOptions, ownCredentials } from './grpc-client.js';
import { identityPaths, readIdentity } from './identity-files.js';

/** Until an answer, milliseconds: less than the timeout that a container's health check usually has (3–5 s). */
const answerMs = 2_500;

interface Asked {
  readonly address: string;
  readonly part: string;
  readonly as: string | undefined;
}

try {
  const asked = parse(process.argv.slice(2));
  await probe(asked);
  process.stdout.write(`${asked.part || 'the service'}: serving\n`);
} catch (error) {
  const text = error instanceof Error ? error.message : String(error);
  process.stderr.write(`${text.split('\n')[0]}\n`);
  // A service that accepts and says nothing leaves a handshake behind that keeps a process alive for ever.
  process.exit(1);
}

function parse(args: string[]): Asked {
  const options = { part: { type: 'string' }, as: { type: 'string' } } as const;
  const { values, positionals } = parseArgs({ args, options, allowPositionals: true });
  const [address, ...rest] = positionals;
  if (address === undefined || rest.length > 0) {
    throw new Error('usage: health-probe HOST:PORT [--part NAME] [--as NAME]');
  }
  return { address, part: values.part ?? '', as: values.as };
}

/** Throws, saying why, unless the answer is that it serves. */
async function probe({ address, part, as }: Asked): Promise<void> {
  const stateDir = process.env['WHEELHOUSE_STATE'] ?? '';
  const { identity, rootPem } = readIdentity(stateDir, 'service', as ?? onlyIdentity(stateDir));
  const client = new HealthClient(address, ownCredentials(identity, rootPem), clientOptions);
  try {
    const found = await check(client, part);
    if (found !== Status.SERVING) {
      throw new Error(`${part || 'the service'}: not serving`);
    }
  } finally {
    client.close();
  }
}

function onlyIdentity(stateDir: string): string {
  const folder = dirname(identityPaths(stateDir, 'service', 'any').certificate);
  const names = readdirSync(folder).filter((name) => name.endsWith('.crt'));
  const [only, another] = names.map((name) => name.slice(0, -'.crt'.length));
  if (only === undefined || another !== undefined) {
    throw new Error(`--as must name one of the identities in ${folder}`);
  }
  return only;
}

function check(client: HealthClient, service: string): Promise<Status> {
  const deadline = Date.now() + answerMs;
  return new Promise((resolve, reject) => {
    client.check({ service }, new Metadata(), { deadline }, (error, response) => {
      if (error === null) {
        resolve(response.status);
      } else {
        reject(new Error(`no answer: ${wordsOf(error)}`));
      }
    });
  });
}

/** grpc-js tells of a server that was turned away only in a clause of its own. */
function wordsOf({ details, code }: ServiceError): string {
  return details === '' ? `status ${code}` : details;
}
