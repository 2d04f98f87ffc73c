/** Authority and data as doubles, for what no real service does on request, and a state folder that leads to them. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import type { KeyedCertificate } from '#chassis/certificates.js';
import { identityPaths, rootPaths } from '#chassis/identity-files.js';
import { DoubledRoot, type PresentCall, ServiceDouble } from '#client/service-double.js';
import type { PresentRequest, PresentResponse } from '#gen/wheelhouse/data/v1/data.js';

type Event = NonNullable<PresentResponse['event']>;

/** From position 7 on. */
export const opened: Event = {
  $case: 'opened',
  value: { outSeq: 7n, geometry: { rows: 24, cols: 80 }, windowBytes: 1 << 20 },
};

export function output(seq: bigint, text: string): Event {
  return { $case: 'output', value: { seq, payload: Buffer.from(text) } };
}

/** Closed with three bytes sent; the number may be one that nobody knows. */
export function closed(reason: number): Event {
  const positions = { ackedSeq: 7n, sentSeq: 10n, producedSeq: 12n };
  return { $case: 'closed', value: { reason: reason as 1, ...positions, exit: undefined } };
}

export class DoubledServices implements Disposable {
  readonly stateDir: string;
  /** What was acknowledged, in order. */
  readonly acks: bigint[] = [];
  readonly #owned: ServiceDouble[] = [];

  private constructor(stateDir: string) {
    this.stateDir = stateDir;
  }

  /** `present` scripts the data service, from the opening on. Authority may have another's certificate. */
  static async start(
    present: (call: PresentCall) => void,
    authorityCertifiedAs: 'authority' | 'data' = 'authority',
  ): Promise<DoubledServices> {
    const services = new DoubledServices(mkdtempSync(join(tmpdir(), 'wh-double-')));
    const root = await DoubledRoot.mint();
    const authority = await ServiceDouble.start(
      root,
      'authority',
      {
        bind: (call) => {
          call.on('error', () => undefined);
          call.write({ event: { $case: 'bound', value: { certificateNotAfterMs: 0n } } });
        },
        listWorkers: (_call, answer) => answer(null, { workers: [] }),
      },
      0,
      authorityCertifiedAs,
    );
    const data = await ServiceDouble.start(root, 'data', {
      present: (call) => services.#hear(call, present),
    });
    services.#owned.push(authority, data);
    const endpoints = { authority: authority.endpoint, data: { local: data.endpoint } };
    writeFileSync(join(services.stateDir, 'endpoints.json'), JSON.stringify(endpoints));
    const { identity } = await root.identity('human-control', 'operator');
    keep(identityPaths(services.stateDir, 'human-control', 'operator'), identity);
    const { certificatePem } = root.authority;
    keep(rootPaths(services.stateDir), { certificatePem, keyPem: '' });
    return services;
  }

  #hear(call: PresentCall, present: (call: PresentCall) => void): void {
    call.on('error', () => undefined);
    call.on('data', ({ operation }: PresentRequest) => {
      if (operation?.$case === 'ack') {
        this.acks.push(operation.value.nextSeq);
      } else if (operation?.$case === 'open') {
        present(call);
      }
    });
  }

  [Symbol.dispose](): void {
    for (const service of this.#owned) {
      service[Symbol.dispose]();
    }
    rmSync(this.stateDir, { recursive: true });
  }
}

function keep(
  paths: { readonly certificate: string; readonly key: string },
  { certificatePem, keyPem }: KeyedCertificate,
): void {
  mkdirSync(dirname(paths.certificate), { recursive: true });
  writeFileSync(paths.certificate, certificatePem);
  writeFileSync(paths.key, keyPem);
}
