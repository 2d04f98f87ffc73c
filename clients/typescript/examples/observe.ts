/**
 * `observe NAME`: prints the bytes of a worker's terminal until it ends. The example of this library,
 * and the reference that the observers in other languages are compared with (test/conformance).
 */
import { writeSync } from 'node:fs';
import {
  ControlBind,
  connect,
  type DataConnection,
  designationOf,
  kebab,
  type LoadedIdentity,
  Presentation,
  RefusedError,
  readIdentity,
  type StreamEnd,
  UnreachableError,
  Workers,
} from '../index.js';
import { type ObserveOptions, parseOptions, readEndpoints, USAGE } from './observe-options.js';
import { Transcript } from './transcript.js';

const EXIT_DONE = 0;
const EXIT_USAGE = 2;
const EXIT_REFUSED = 3;
const EXIT_UNREACHABLE = 4;

const options = parseOptions(process.argv.slice(2));
if (options === undefined) {
  say(USAGE);
  process.exitCode = EXIT_USAGE;
} else {
  process.exitCode = await run(options);
}

async function run(options: ObserveOptions): Promise<number> {
  using transcript = new Transcript(options.transcript);
  try {
    const identity = readIdentity(options.stateDir, options.role, options.name);
    return await observe(options, identity, transcript);
  } catch (error) {
    if (error instanceof RefusedError || error instanceof UnreachableError) {
      transcript.failed(error);
      say(error.message);
      return error instanceof RefusedError ? EXIT_REFUSED : EXIT_UNREACHABLE;
    }
    if (error instanceof Error && 'syscall' in error) {
      say(error.message);
      return EXIT_USAGE;
    }
    throw error;
  }
}

async function observe(
  options: ObserveOptions,
  identity: LoadedIdentity,
  transcript: Transcript,
): Promise<number> {
  const endpoints = readEndpoints(options.stateDir);
  using authority = connect(endpoints.authority, 'authority', identity);
  using _presence = options.binds
    ? await ControlBind.open(endpoints.authority, identity)
    : undefined;
  if (options.binds) {
    transcript.bound();
  }
  const workers = await new Workers(authority).list();
  const worker = workers.find(
    ({ name, workerRef }) => name === options.worker || workerRef === options.worker,
  );
  // A name that nobody has is passed on as it is, so that it is the services that say no.
  const seen =
    worker === undefined ? { workerRef: options.worker, generation: 1n } : designationOf(worker);
  const node = worker?.dataNode || 'local';
  const endpoint = worker?.dataEndpoint || endpoints.data[node];
  if (endpoint === undefined) {
    throw new RefusedError({ reason: 'OWNER_UNREACHABLE', facts: { node } });
  }
  using data = connect(endpoint, 'data', identity);
  const designation = { ...seen, generation: options.generation ?? seen.generation };
  const end = await look(data, designation, options, transcript);
  transcript.ended(end);
  return report(end);
}

async function look(
  data: DataConnection,
  worker: { readonly workerRef: string; readonly generation: bigint },
  { holdLimitMs, replace, transcript: target }: ObserveOptions,
  transcript: Transcript,
): Promise<StreamEnd> {
  let begin = (): void => undefined;
  const begun = new Promise<void>((resolve) => {
    begin = resolve;
  });
  const leaving = new AbortController();
  const prints = target !== '-';
  process.stdout.on('error', () => leaving.abort());
  const presentation = await Presentation.open(
    data,
    { worker, holdLimitMs, replace },
    {
      take: async (bytes) => {
        await begun;
        if (prints) {
          await print(bytes);
        }
        transcript.took(bytes);
      },
      resized: (size, outSeq) => transcript.sized('resized', outSeq, size),
    },
  );
  transcript.sized('opened', presentation.opening.outSeq, presentation.opening.geometry);
  begin();
  leaving.signal.addEventListener('abort', () => void presentation.detach());
  process.once('SIGINT', () => leaving.abort());
  process.once('SIGTERM', () => leaving.abort());
  return await presentation.ended;
}

/** Resolves when the system has every byte: only then may they be acknowledged. Rejected, nothing is. */
async function print(bytes: Buffer): Promise<void> {
  await new Promise<void>((resolve) => {
    process.stdout.write(bytes, (error) => {
      if (!error) {
        resolve();
      }
    });
  });
}

function report(end: StreamEnd): number {
  switch (end.kind) {
    case 'closed':
      say(
        `closed: ${kebab(end.reason)} acked=${end.ackedSeq} sent=${end.sentSeq} produced=${end.producedSeq}`,
      );
      return end.reason === 'ENDED' ? EXIT_DONE : EXIT_REFUSED;
    case 'detached':
      return EXIT_DONE;
    case 'lost':
      say(`closed: transport-lost acked=${end.takenSeq} (${end.cause.message})`);
      return EXIT_UNREACHABLE;
  }
}

function say(line: string): void {
  writeSync(2, `${line}\n`);
}
