/** What a bound operator or agent asks of authority about workers. Every method throws a `RefusedError` or an `UnreachableError`. */
import type { LoadedIdentity } from '#chassis/identity-files.js';
import {
  type CloseWorkerResponse,
  Fencing,
  type OpenWorkerRequest,
  type Worker,
} from '#gen/wheelhouse/authority/v1/authority.js';
import { UnreachableError } from './call-errors.js';
import { newRequest } from './certificate-request.js';
import { type AuthorityConnection, ask } from './connect.js';
import type { Designation } from './presentation.js';

export interface Closing {
  /** Whether every node has acknowledged; otherwise the worker is still closing. */
  readonly isFenced: boolean;
}

export class Workers {
  readonly #authority: AuthorityConnection;

  constructor(authority: AuthorityConnection) {
    this.#authority = authority;
  }

  /** Makes a position for an agent. It is durable when this returns. */
  async open(wanted: Partial<OpenWorkerRequest> & { readonly name: string }): Promise<Worker> {
    const request = {
      actor: '',
      workspace: '',
      driveAllowed: false,
      delegationAllowed: false,
      dataNode: '',
      ...wanted,
    };
    const { client, service } = this.#authority;
    const { worker } = await ask<{ worker?: Worker | undefined }>(service, (...rest) =>
      client.openWorker(request, ...rest),
    );
    return present(worker, service);
  }

  /** Ends a position: its presentations, then its terminal. */
  async close(worker: Designation): Promise<Closing> {
    const { client, service } = this.#authority;
    const { fencing } = await ask<CloseWorkerResponse>(service, (...rest) =>
      client.closeWorker(toRequest(worker), ...rest),
    );
    return { isFenced: fencing === Fencing.FENCED };
  }

  /** Makes a closed position anew, one generation later. */
  async reopen(designation: Designation): Promise<Worker> {
    const { client, service } = this.#authority;
    const { worker } = await ask<{ worker?: Worker | undefined }>(service, (...rest) =>
      client.reopenWorker(toRequest(designation), ...rest),
    );
    return present(worker, service);
  }

  /** In the order they were opened. An agent sees its own. */
  async list(): Promise<readonly Worker[]> {
    const { client, service } = this.#authority;
    const { workers } = await ask<{ workers: Worker[] }>(service, (...rest) =>
      client.listWorkers({}, ...rest),
    );
    return workers;
  }

  /** Obtains the identity of an actor that one of the operator's workers names. The key is made here. */
  async issueIdentity(actor: string, rootPem: string): Promise<LoadedIdentity> {
    const { request, keyPem } = await newRequest();
    const { client, service } = this.#authority;
    const certificateRequest = Buffer.from(request);
    const { certificate } = await ask<{ certificate?: { certificatePem: string } | undefined }>(
      service,
      (...rest) => client.issueIdentity({ actor, certificateRequest }, ...rest),
    );
    const { certificatePem } = present(certificate, service);
    return { identity: { certificatePem, keyPem }, rootPem };
  }

  /** Obtains the certificate of one run, under the caller's actor. The key is made here. */
  async issueRunCertificate(rootPem: string): Promise<LoadedIdentity> {
    const { request, keyPem } = await newRequest();
    const { client, service } = this.#authority;
    const certificateRequest = Buffer.from(request);
    const { certificate } = await ask<{ certificate?: { certificatePem: string } | undefined }>(
      service,
      (...rest) => client.issueRunCertificate({ certificateRequest }, ...rest),
    );
    const { certificatePem } = present(certificate, service);
    return { identity: { certificatePem, keyPem }, rootPem };
  }

  /** Sits the bound agent down. Returns where the worker's data node is reached, `host:port`. */
  async occupy(worker: Designation): Promise<string> {
    const { client, service } = this.#authority;
    const { dataEndpoint } = await ask<{ dataEndpoint: string }>(service, (...rest) =>
      client.occupy(toRequest(worker), ...rest),
    );
    return dataEndpoint;
  }
}

/** What names a listed worker in later calls. */
export function designationOf(worker: Worker): Designation {
  return { workerRef: worker.workerRef, generation: worker.workerGeneration };
}

function toRequest({ workerRef, generation }: Designation): {
  workerRef: string;
  expectedWorkerGeneration: bigint;
} {
  return { workerRef, expectedWorkerGeneration: generation };
}

function present<Value>(value: Value | undefined, service: string): Value {
  if (value === undefined) {
    throw new UnreachableError(service, 'the answer lacks what it is for');
  }
  return value;
}
