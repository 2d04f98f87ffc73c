/**
 * Resolves on one stream: the bench plays a data node with 100 terminals, each presented and each
 * asking again as soon as it has been answered.
 */
import { X509Certificate } from 'node:crypto';
import type { ClientDuplexStream } from '@grpc/grpc-js';
import { clientCredentials, clientOptions } from '#chassis/grpc-client.js';
import type { LoadedIdentity } from '#chassis/identity-files.js';
import type { Designation } from '#client/presentation.js';
import { designationOf, Workers } from '#client/workers.js';
import {
  AuthorityServiceClient,
  Operation,
  type Question,
  type ResolveRequest,
  type ResolveResponse,
} from '#gen/wheelhouse/authority/v1/authority.js';
import { mintIdentity } from '../stack/state-folder.js';
import { quantile, type Row, row, type Terms } from './row.js';
import { Scene } from './scene.js';

const NODE = 'bench';
const AGENT = 1;
const OPERATOR = 2;

export async function resolve({ isSmoke, say }: Terms): Promise<readonly Row[]> {
  const terminalCount = isSmoke ? 5 : 100;
  const forMs = isSmoke ? 500 : 5_000;
  await using scene = await Scene.open();
  using node = await BenchNode.open(scene);
  const workers: Designation[] = [];
  for (let at = 0; at < terminalCount; at += 1) {
    const name = `resolve-${at}`;
    const { workspace } = scene.stack;
    const opened = await scene.workers.open({ name, actor: NODE, workspace, dataNode: NODE });
    workers.push(designationOf(opened));
  }
  await node.present(scene, workers);
  await node.askFor(workers, 1_000);
  const alone = await node.askFor(workers.slice(0, 1), forMs);
  const { took, ms } = await node.askFor(workers, forMs);
  say(`resolve: ${took.length} answers in ${ms.toFixed(0)} ms`);
  return [
    row('resolve, one terminal, p50', 'ms', quantile(alone.took, 0.5)),
    row(`resolve, ${terminalCount} terminals, p50`, 'ms', quantile(took, 0.5)),
    row(`resolve, ${terminalCount} terminals, p99`, 'ms', quantile(took, 0.99)),
    row(`resolve, ${terminalCount} terminals, closed loop`, '1/s', (took.length / ms) * 1000),
  ];
}

interface Asked {
  /** How long each answer took, in ms. */
  readonly took: readonly number[];
  readonly ms: number;
}

type Message = NonNullable<ResolveRequest['message']>;
type Told = NonNullable<ResolveResponse['message']>;

class BenchNode implements Disposable {
  readonly #client: AuthorityServiceClient;
  readonly #call: ClientDuplexStream<ResolveRequest, ResolveResponse>;
  #hear: (told: Told) => void = () => undefined;
  #batch = 0n;
  #request = 0n;

  private constructor(client: AuthorityServiceClient) {
    this.#client = client;
    this.#call = client.resolve();
    this.#call.on('error', () => undefined);
    this.#call.on('data', ({ message }: ResolveResponse) => {
      if (message !== undefined) {
        this.#hear(message);
      }
    });
  }

  static async open(scene: Scene): Promise<BenchNode> {
    const { stateDir, endpoints } = scene.stack;
    const { identity, rootPem } = await mintIdentity(stateDir, 'service', 'data', { node: NODE });
    const credentials = clientCredentials(identity, rootPem, { plane: 'authority' });
    const node = new BenchNode(
      new AuthorityServiceClient(endpoints.authority, credentials, clientOptions),
    );
    const value = { dataIncarnation: 'dn_bench', endpoint: '127.0.0.1:1', carried: [] };
    await node.#tell({ $case: 'inventory', value }, 'reconciled');
    node.#introduce(AGENT, scene.agent.identity);
    node.#introduce(OPERATOR, scene.control.identity);
    return node;
  }

  /** Sits the scene's agent down at each worker, gives it a terminal and opens a look at it. */
  async present(scene: Scene, workers: readonly Designation[]): Promise<void> {
    for (const [at, worker] of workers.entries()) {
      await new Workers(scene.agent.authority).occupy(worker);
      const { workerRef, generation: expectedWorkerGeneration } = worker;
      const wanted = { request: this.#next(), caller: AGENT, workerRef, expectedWorkerGeneration };
      const admission = await this.#tell({ $case: 'reserve', value: wanted }, 'admission');
      const verdict = admission.value.verdict;
      if (verdict?.$case !== 'reservation') {
        throw new Error(`no terminal for ${workerRef}: ${JSON.stringify(verdict)}`);
      }
      const attachmentRef = verdict.value.grant?.attachmentRef ?? '';
      const active = { request: this.#next(), attachmentRef };
      await this.#tell({ $case: 'activate', value: active }, 'recorded');
      const question = questionOf(worker, at, Operation.PRESENT);
      await this.#tell(this.#batchOf([question]), 'answers');
    }
  }

  /** Each worker has one question under way, for as long as is given. */
  askFor(workers: readonly Designation[], forMs: number): Promise<Asked> {
    const took: number[] = [];
    const began = performance.now();
    const questions = workers.map((worker, at) => questionOf(worker, at, Operation.OBSERVE));
    return new Promise((done, reject) => {
      let askedMs = began;
      this.#hear = (told) => {
        const now = performance.now();
        if (told.$case !== 'answers') {
          return;
        }
        const refused = told.value.answers.find(({ verdict }) => verdict?.$case !== 'grant');
        if (refused !== undefined) {
          reject(new Error(`refused: ${JSON.stringify(refused.verdict)}`));
          return;
        }
        for (let at = 0; at < told.value.answers.length; at += 1) {
          took.push(now - askedMs);
        }
        if (now - began >= forMs) {
          done({ took, ms: now - began });
          return;
        }
        askedMs = now;
        this.#send(this.#batchOf(questions));
      };
      this.#send(this.#batchOf(questions));
    });
  }

  [Symbol.dispose](): void {
    this.#call.cancel();
    this.#client.close();
  }

  #introduce(caller: number, { identity }: LoadedIdentity): void {
    const certificate = Buffer.from(new X509Certificate(identity.certificatePem).raw);
    this.#send({ $case: 'introduction', value: { caller, certificate } });
  }

  #batchOf(questions: readonly Question[]): Message {
    this.#batch += 1n;
    return { $case: 'batch', value: { batch: this.#batch, questions: [...questions] } };
  }

  #next(): bigint {
    this.#request += 1n;
    return this.#request;
  }

  #send(message: Message): void {
    this.#call.write({ message });
  }

  /** Sends, and waits for the next message of a kind. */
  #tell<Kind extends Told['$case']>(
    message: Message,
    kind: Kind,
  ): Promise<Extract<Told, { $case: Kind }>> {
    return new Promise((resolve) => {
      this.#hear = (told) => {
        if (told.$case === kind) {
          resolve(told as Extract<Told, { $case: Kind }>);
        }
      };
      this.#send(message);
    });
  }
}

function questionOf(worker: Designation, at: number, operation: Operation): Question {
  return {
    operation,
    caller: OPERATOR,
    workerRef: worker.workerRef,
    expectedWorkerGeneration: worker.generation,
    presentation: BigInt(at + 1),
    replace: false,
  };
}
