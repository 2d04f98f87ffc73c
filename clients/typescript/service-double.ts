/**
 * A double of authority and data for the client library's own tests: real gRPC and real mTLS, scripted
 * answers. It proves nothing about the services; the scenarios on real processes do.
 */
import {
  type handleUnaryCall,
  Server,
  ServerCredentials,
  type ServerDuplexStream,
  type UntypedServiceImplementation,
} from '@grpc/grpc-js';
import { CertificateAuthority, mintAuthority } from '#chassis/certificates.js';
import type { LoadedIdentity } from '#chassis/identity-files.js';
import {
  AuthorityServiceService,
  type BindRequest,
  type BindResponse,
  type ListWorkersRequest,
  type ListWorkersResponse,
} from '#gen/wheelhouse/authority/v1/authority.js';
import {
  DataServiceService,
  type PossessRequest,
  type PossessResponse,
  type PresentRequest,
  type PresentResponse,
} from '#gen/wheelhouse/data/v1/data.js';

export type BindCall = ServerDuplexStream<BindRequest, BindResponse>;
export type PresentCall = ServerDuplexStream<PresentRequest, PresentResponse>;
export type PossessCall = ServerDuplexStream<PossessRequest, PossessResponse>;

export interface Script {
  readonly bind?: (call: BindCall) => void;
  readonly present?: (call: PresentCall) => void;
  readonly possess?: (call: PossessCall) => void;
  readonly listWorkers?: handleUnaryCall<ListWorkersRequest, ListWorkersResponse>;
}

const YEAR_MS = 365 * 86_400_000;

/** One deployment's root, with the identities a test needs. */
export class DoubledRoot {
  readonly authority: CertificateAuthority;

  private constructor(authority: CertificateAuthority) {
    this.authority = authority;
  }

  static async mint(): Promise<DoubledRoot> {
    return new DoubledRoot(await CertificateAuthority.load(await mintAuthority(Date.now())));
  }

  async identity(
    role: 'human-control' | 'agent' | 'service',
    name: string,
    notAfterMs = Date.now() + YEAR_MS,
  ): Promise<LoadedIdentity> {
    const identity = await this.authority.mint({ role, name, notAfterMs }, Date.now());
    return { identity, rootPem: this.authority.certificatePem };
  }
}

/** A listening double. Disposing it cuts every call. */
export class ServiceDouble implements Disposable {
  readonly endpoint: string;
  readonly #server: Server;

  private constructor(server: Server, port: number) {
    this.#server = server;
    this.endpoint = `127.0.0.1:${port}`;
  }

  static async start(
    root: DoubledRoot,
    plane: 'authority' | 'data',
    script: Script,
    port = 0,
    certifiedAs = plane,
  ): Promise<ServiceDouble> {
    const { identity } = await root.identity('service', certifiedAs);
    const server = new Server();
    if (plane === 'authority') {
      server.addService(AuthorityServiceService, implement(AuthorityServiceService, script));
    } else {
      server.addService(DataServiceService, implement(DataServiceService, script));
    }
    const pair = {
      cert_chain: Buffer.from(identity.certificatePem),
      private_key: Buffer.from(identity.keyPem),
    };
    const root_ = Buffer.from(root.authority.certificatePem);
    const credentials = ServerCredentials.createSsl(root_, [pair], true);
    const bound = await new Promise<number>((resolve, reject) => {
      server.bindAsync(`127.0.0.1:${port}`, credentials, (error, taken) =>
        error === null ? resolve(taken) : reject(error),
      );
    });
    return new ServiceDouble(server, bound);
  }

  [Symbol.dispose](): void {
    this.#server.forceShutdown();
  }
}

function implement(definition: object, script: Script): UntypedServiceImplementation {
  const scripted: Record<string, unknown> = { ...script };
  const silent = (call: { on(event: string, listener: () => void): void }): void => {
    call.on('error', () => undefined);
  };
  return Object.fromEntries(
    Object.keys(definition).map((name) => [name, (scripted[name] ?? silent) as typeof silent]),
  );
}
