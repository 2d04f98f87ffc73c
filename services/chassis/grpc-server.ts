/**
 * A gRPC server of ours: mTLS, limits, and the one interceptor that decides who may call what.
 */
import {
  Server,
  ServerCredentials,
  ServerInterceptingCall,
  type ServerInterceptor,
  type ServiceDefinition,
  type UntypedServiceImplementation,
} from '@grpc/grpc-js';
import { type ChannelName, methodCallers, operationCallers } from '#gen/channels.js';
import type { Clock } from '#kernel/clock.js';
import { granted, type Outcome, refused } from '#kernel/outcome.js';
import type { ReasonName } from '#kernel/refusal.js';
import type { CallerIdentity, CallerRole } from './caller.js';
import { identify } from './caller.js';
import type { KeyedCertificate } from './certificates.js';
import { statusOf } from './refusal-status.js';

/** Limits of every server; docs/limits.md lists them. */
export const serverLimits = {
  /** Streams a connection may have open: a client's further calls wait in the client. */
  streamsPerConnectionMax: 256,
  /** The largest message is a batch of questions; a terminal frame is 64 KiB at most. */
  messageBytesMax: 512 * 1024,
  /** With the timeout below: a vanished peer is noticed within 15 s. */
  keepaliveMs: 10_000,
  keepaliveTimeoutMs: 5_000,
} as const;

export interface Exposed {
  readonly definition: ServiceDefinition;
  readonly implementation: UntypedServiceImplementation;
}

export interface ServerOptions {
  /** `host:port`; port 0 takes a free one. */
  readonly listen: string;
  readonly identity: KeyedCertificate;
  /** The deployment's root, PEM: the only one whose certificates are let in. */
  readonly rootPem: string;
  readonly clock: Clock;
}

export interface RunningServer {
  /** The port it listens on. */
  readonly port: number;
  /** Takes no new call, waits until all have ended or the deadline has passed, then cuts what is left. */
  drain(deadlineMs: number): Promise<void>;
  /** Cuts everything now. */
  abort(): void;
}

/** Starts listening. Throws when the address cannot be had. */
export async function startServer(
  exposed: readonly Exposed[],
  options: ServerOptions,
): Promise<RunningServer> {
  const server = new Server({
    'grpc.max_concurrent_streams': serverLimits.streamsPerConnectionMax,
    'grpc.max_receive_message_length': serverLimits.messageBytesMax,
    'grpc.keepalive_time_ms': serverLimits.keepaliveMs,
    'grpc.keepalive_timeout_ms': serverLimits.keepaliveTimeoutMs,
    interceptors: [admission(options.clock)],
  });
  for (const { definition, implementation } of exposed) {
    server.addService(definition, implementation);
  }
  const port = await bind(server, options);
  return {
    port,
    drain: (deadlineMs) => drain(server, options.clock, deadlineMs),
    abort: () => server.forceShutdown(),
  };
}

function bind(server: Server, options: ServerOptions): Promise<number> {
  const pair = {
    cert_chain: Buffer.from(options.identity.certificatePem),
    private_key: Buffer.from(options.identity.keyPem),
  };
  const credentials = ServerCredentials.createSsl(Buffer.from(options.rootPem), [pair], true);
  return new Promise((resolve, reject) => {
    server.bindAsync(options.listen, credentials, (error, port) => {
      if (error === null) {
        resolve(port);
      } else {
        reject(error);
      }
    });
  });
}

/** grpc-js waits for open streams for ever, so the deadline is ours. */
function drain(server: Server, clock: Clock, deadlineMs: number): Promise<void> {
  return new Promise((resolve) => {
    const deadline = clock.after(deadlineMs, () => {
      server.forceShutdown();
      resolve();
    });
    server.tryShutdown(() => {
      deadline[Symbol.dispose]();
      resolve();
    });
  });
}

/** What a call gives away about its connection. */
interface Connected {
  getAuthContext(): { sslPeerCertificate?: { raw: Buffer } };
}

/** Who holds the connection of this call. Refuses CALLER_UNIDENTIFIED. */
export function callerOf(call: Connected): Outcome<CallerIdentity> {
  const certificate = certificateOf(call);
  if (certificate === undefined) {
    return refused('CALLER_UNIDENTIFIED', { found: 'no certificate' });
  }
  return identify(certificate);
}

/**
 * Undefined also where the connection is gone: what was received before may still begin a call, and
 * grpc-js looks for the certificate of a socket that has none any more, and throws.
 */
function certificateOf(call: Connected): Buffer | undefined {
  try {
    return call.getAuthContext().sslPeerCertificate?.raw;
  } catch {
    return undefined;
  }
}

const ROLE_OF: Readonly<Record<ChannelName, CallerRole>> = {
  HUMAN_CONTROL: 'human-control',
  AGENT: 'agent',
  CREATOR: 'creator',
  SERVICE: 'service',
};

/**
 * Enforces the declared channels on every call and every operation inside a stream (laws P3, E3).
 *
 * The connection outlives its handshake, so the certificate's end is looked at on every new call.
 */
function admission(clock: Clock): ServerInterceptor {
  return (method, call) =>
    new ServerInterceptingCall(call, {
      start: (next) => {
        const admitted = admit(call, method.path, clock);
        if (admitted.kind === 'refused') {
          call.sendStatus(statusOf(admitted.refusal));
          return;
        }
        next({
          onReceiveMessage: (message, forward) => {
            const allowed = admitOperation(admitted.value, method.path, message);
            if (allowed.kind === 'refused') {
              call.sendStatus(statusOf(allowed.refusal));
              return;
            }
            forward(message);
          },
        });
      },
    });
}

function admit(call: Connected, path: string, clock: Clock): Outcome<CallerIdentity> {
  const caller = callerOf(call);
  if (caller.kind === 'refused') {
    return caller;
  }
  const allowed = admitRole(caller.value, methodCallers[path] ?? []);
  if (allowed.kind === 'refused') {
    return allowed;
  }
  if (caller.value.notAfterMs <= clock.now()) {
    const expiredAt = new Date(caller.value.notAfterMs).toISOString();
    return refused('CERTIFICATE_EXPIRED', { expiredAt });
  }
  return caller;
}

function admitOperation(
  caller: CallerIdentity,
  path: string,
  message: unknown,
): Outcome<CallerIdentity> {
  const operations = operationCallers[path];
  if (operations === undefined) {
    return granted(caller);
  }
  const chosen =
    operations.oneof in Object(message) ? Object(message)[operations.oneof] : undefined;
  // A message whose operation this build does not know decodes as none: the handler says so.
  return chosen === undefined
    ? granted(caller)
    : admitRole(caller, operations.callers[chosen.$case] ?? []);
}

function admitRole(
  caller: CallerIdentity,
  allowed: readonly ChannelName[],
): Outcome<CallerIdentity> {
  return allowed.some((channel) => ROLE_OF[channel] === caller.role)
    ? granted(caller)
    : refused(missingRole(allowed), { callerRole: caller.role });
}

/** Named after the most demanding channel that would have done. */
function missingRole(allowed: readonly ChannelName[]): ReasonName {
  if (allowed.includes('HUMAN_CONTROL')) {
    return 'ROLE_NOT_HUMAN_CONTROL';
  }
  return allowed.includes('AGENT') ? 'ROLE_NOT_AGENT' : 'ROLE_NOT_SERVICE';
}
