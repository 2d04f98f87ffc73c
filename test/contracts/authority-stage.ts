/**
 * A whole authority in this process, for its tests: real gRPC, real mTLS, a real journal, a clock that
 * the test moves, and players for the other side.
 */

import { X509Certificate } from 'node:crypto';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import type { ClientDuplexStream, ServiceError } from '@grpc/grpc-js';
import { pino } from 'pino';
import type { CallerRole } from '#chassis/caller.js';
import {
  CertificateAuthority,
  type KeyedCertificate,
  mintAuthority,
  requestCertificate,
} from '#chassis/certificates.js';
import { clientCredentials, clientOptions } from '#chassis/grpc-client.js';
import { identityPaths, rootPaths } from '#chassis/identity-files.js';
import { fromRefused, refusalOf } from '#chassis/refusal-status.js';
import {
  type Answer,
  AuthorityServiceClient,
  type BindRequest,
  type BindResponse,
  type Carried,
  type CloseWorkerResponse,
  type Fence,
  type IssueIdentityResponse,
  type IssueRunCertificateResponse,
  type ListWorkersResponse,
  type OccupyResponse,
  type OpenWorkerRequest,
  type OpenWorkerResponse,
  Operation,
  type Question,
  type ReopenWorkerResponse,
  type ResolveRequest,
  type ResolveResponse,
  type Worker,
} from '#gen/wheelhouse/authority/v1/authority.js';
import type { Clock } from '#kernel/clock.js';
import { refused } from '#kernel/outcome.js';
import { Journal } from '../../services/authority/adapters/journal.js';
import { type AuthoritySettings, loadSettings } from '../../services/authority/config.js';
import { type RunningAuthority, start } from '../../services/authority/start.js';

/** Time that stands still until the test moves it. Starts now, or certificates would not be valid. */
class MovedClock implements Clock {
  #nowMs = Date.now();
  #timers = new Set<{ readonly dueMs: number; readonly call: () => void }>();

  now(): number {
    return this.#nowMs;
  }

  monotonic(): number {
    return this.#nowMs;
  }

  after(delayMs: number, call: () => void): Disposable {
    const timer = { dueMs: this.#nowMs + delayMs, call };
    this.#timers.add(timer);
    return { [Symbol.dispose]: () => this.#timers.delete(timer) };
  }

  /** Lets time pass, and what is due by then happen, in its order. */
  advance(byMs: number): void {
    const untilMs = this.#nowMs + byMs;
    for (;;) {
      const due = [...this.#timers].filter(({ dueMs }) => dueMs <= untilMs);
      const [next] = due.sort((a, b) => a.dueMs - b.dueMs);
      if (next === undefined) {
        break;
      }
      this.#timers.delete(next);
      this.#nowMs = Math.max(this.#nowMs, next.dueMs);
      next.call();
    }
    this.#nowMs = untilMs;
  }
}

/** What came on a stream, in order, and who waits for more. */
class Inbox<Message> {
  readonly all: Message[] = [];
  #taken = 0;
  readonly #waiting: (() => void)[] = [];

  push(message: Message): void {
    this.all.push(message);
    for (const wake of this.#waiting.splice(0)) {
      wake();
    }
  }

  /** The next message that was not taken yet. */
  async next(): Promise<Message> {
    while (this.#taken >= this.all.length) {
      await this.#more();
    }
    const message = this.all[this.#taken];
    this.#taken += 1;
    return message as Message;
  }

  /** Resolves when a message that fits has come, taken or not. */
  async find<Found extends Message>(fits: (message: Message) => message is Found): Promise<Found> {
    for (;;) {
      const found = this.all.find(fits);
      if (found !== undefined) {
        return found;
      }
      await this.#more();
    }
  }

  #more(): Promise<void> {
    return new Promise((resolve) => this.#waiting.push(resolve));
  }
}

type Stored = { readonly role: CallerRole; readonly name: string; readonly node?: string };

export class Stage implements AsyncDisposable {
  readonly stateDir: string;
  readonly clock = new MovedClock();
  readonly root: CertificateAuthority;
  /** Every line the service has logged, at every level. */
  readonly logged: string[] = [];
  #settings: AuthoritySettings;
  #running: RunningAuthority | undefined;
  readonly #clients = new Set<AuthorityServiceClient>();

  private constructor(stateDir: string, root: CertificateAuthority, settings: AuthoritySettings) {
    this.stateDir = stateDir;
    this.root = root;
    this.#settings = settings;
  }

  static async open(overrides: Partial<AuthoritySettings> = {}): Promise<Stage> {
    const stateDir = mkdtempSync(join(tmpdir(), 'wh-authority-'));
    const keyed = await mintAuthority(Date.now());
    write(rootPaths(stateDir), keyed);
    const root = await CertificateAuthority.load(keyed);
    const settings = { ...loadSettings({}), stateDir, logLevel: 'info', ...overrides };
    const stage = new Stage(stateDir, root, settings);
    write(
      identityPaths(stateDir, 'service', 'authority'),
      await stage.mint({ role: 'service', name: 'authority' }),
    );
    await stage.start();
    return stage;
  }

  get running(): RunningAuthority {
    if (this.#running === undefined) {
      throw new Error('authority does not run');
    }
    return this.#running;
  }

  async start(overrides: Partial<AuthoritySettings> = {}): Promise<void> {
    this.#settings = { ...this.#settings, ...overrides };
    const logger = pino({ level: 'trace' }, { write: (line: string) => this.logged.push(line) });
    this.#running = await start({ settings: this.#settings, clock: this.clock, logger });
  }

  /** Ends as a kill would, and begins a new life. */
  async crash(overrides: Partial<AuthoritySettings> = {}): Promise<void> {
    this.abort();
    await this.start(overrides);
  }

  abort(): void {
    this.#running?.abort();
    this.#running = undefined;
  }

  mint(subject: Stored & { readonly lifeMs?: number }): Promise<KeyedCertificate> {
    const { lifeMs = 86_400_000, ...named } = subject;
    const notAfterMs = this.clock.now() + lifeMs;
    // Begins by the machine's clock, which TLS looks at.
    return this.root.mint({ ...named, notAfterMs }, Date.now());
  }

  /** A client that presents an identity to the authority that runs now. */
  dial(identity: KeyedCertificate): AuthorityServiceClient {
    const credentials = clientCredentials(identity, this.root.certificatePem, {
      plane: 'authority',
    });
    const address = `127.0.0.1:${this.running.ready.port}`;
    const client = new AuthorityServiceClient(address, credentials, clientOptions);
    this.#clients.add(client);
    return client;
  }

  /** A disk that takes nothing more, until disposed. */
  fullDisk(): Disposable {
    const { append } = Journal.prototype;
    Journal.prototype.append = () => refused('JOURNAL_FULL', { freeBytes: '0' });
    return {
      [Symbol.dispose]: () => {
        Journal.prototype.append = append;
      },
    };
  }

  async operator(name = 'ada', identity?: KeyedCertificate): Promise<Player> {
    return new Player(this, identity ?? (await this.mint({ role: 'human-control', name })));
  }

  async agent(name = 'demo', identity?: KeyedCertificate): Promise<Player> {
    return new Player(this, identity ?? (await this.mint({ role: 'agent', name })));
  }

  async node(given: Partial<NodePlayerOptions> = {}): Promise<NodePlayer> {
    const node = given.node ?? 'local';
    const identity = await this.mint({ role: 'service', name: 'data', node });
    return new NodePlayer(this.dial(identity), given);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const client of this.#clients) {
      client.close();
    }
    this.abort();
    rmSync(this.stateDir, { recursive: true, force: true });
  }
}

function write(paths: { certificate: string; key: string }, keyed: KeyedCertificate): void {
  mkdirSync(dirname(paths.certificate), { recursive: true, mode: 0o700 });
  writeFileSync(paths.certificate, keyed.certificatePem, { mode: 0o600 });
  writeFileSync(paths.key, keyed.keyPem, { mode: 0o600 });
}

/** How a call or a stream ended: the name of a refusal, or the status of what is none. */
export type Ended = string;

/** Names how a call or a stream ended. */
export function endedBy(error: ServiceError): Ended {
  return refusalOf(error)?.reason ?? `status ${error.code}`;
}

/** Someone with a certificate: an operator or an agent. */
export class Player {
  readonly identity: KeyedCertificate;
  readonly client: AuthorityServiceClient;

  constructor(stage: Stage, identity: KeyedCertificate) {
    this.identity = identity;
    this.client = stage.dial(identity);
  }

  /** Opens a Bind and waits until it is bound; throws the name of the refusal otherwise. */
  async bind(): Promise<Bound> {
    const bound = new Bound(this.client);
    await bound.isBound();
    return bound;
  }

  async open(given: Partial<OpenWorkerRequest> = {}): Promise<Worker> {
    const request = {
      name: 'demo',
      actor: '',
      workspace: '/work',
      driveAllowed: false,
      delegationAllowed: false,
      dataNode: '',
      ...given,
    };
    return shown(
      await answered<OpenWorkerResponse>((reply) => this.client.openWorker(request, reply)),
    );
  }

  close(worker: Worker): Promise<CloseWorkerResponse> {
    return answered((reply) => this.client.closeWorker(designationOf(worker), reply));
  }

  async reopen(worker: Worker): Promise<Worker> {
    const request = designationOf(worker);
    return shown(
      await answered<ReopenWorkerResponse>((reply) => this.client.reopenWorker(request, reply)),
    );
  }

  async list(): Promise<readonly Worker[]> {
    const { workers } = await answered<ListWorkersResponse>((reply) =>
      this.client.listWorkers({}, reply),
    );
    return workers;
  }

  occupy(worker: Worker): Promise<OccupyResponse> {
    return answered((reply) => this.client.occupy(designationOf(worker), reply));
  }

  async issueIdentity(actor: string): Promise<KeyedCertificate> {
    const { request, keyPem } = await requestCertificate();
    const wanted = { actor, certificateRequest: Buffer.from(request) };
    const { certificate } = await answered<IssueIdentityResponse>((reply) =>
      this.client.issueIdentity(wanted, reply),
    );
    return { certificatePem: certificate?.certificatePem ?? '', keyPem };
  }

  async issueRun(certificateRequest?: Buffer): Promise<KeyedCertificate> {
    const { request, keyPem } = await requestCertificate();
    const wanted = { certificateRequest: certificateRequest ?? Buffer.from(request) };
    const { certificate } = await answered<IssueRunCertificateResponse>((reply) =>
      this.client.issueRunCertificate(wanted, reply),
    );
    return { certificatePem: certificate?.certificatePem ?? '', keyPem };
  }
}

type Reply<Response> = (error: ServiceError | null, response: Response) => void;

/** Resolves with the response, rejects with the refusal's name as the message. */
function answered<Response>(call: (reply: Reply<Response>) => unknown): Promise<Response> {
  return new Promise((resolve, reject) => {
    call((error, response) =>
      error === null ? resolve(response) : reject(new Error(endedBy(error))),
    );
  });
}

function shown({ worker }: { readonly worker: Worker | undefined }): Worker {
  if (worker === undefined) {
    throw new Error('no worker is shown');
  }
  return worker;
}

export function designationOf(worker: Worker) {
  const { workerRef, workerGeneration: expectedWorkerGeneration } = worker;
  return { workerRef, expectedWorkerGeneration };
}

/** One Bind stream. */
export class Bound {
  readonly inbox = new Inbox<NonNullable<BindResponse['event']>>();
  readonly ended: Promise<Ended>;
  readonly #call: ClientDuplexStream<BindRequest, BindResponse>;

  constructor(client: AuthorityServiceClient) {
    this.#call = client.bind();
    this.#call.on('data', ({ event }: BindResponse) => {
      if (event !== undefined) {
        this.inbox.push(event);
      }
    });
    this.ended = new Promise((resolve) => {
      this.#call.on('error', (error: ServiceError) => resolve(endedBy(error)));
      this.#call.on('end', () => resolve('ended'));
    });
  }

  async isBound(): Promise<void> {
    const first = await Promise.race([this.inbox.next(), this.ended]);
    if (typeof first === 'string') {
      throw new Error(first);
    }
  }

  /** Asks for a certificate that continues this one; rejects with the refusal's name. */
  async renew(certificateRequest?: Buffer): Promise<KeyedCertificate> {
    const { request, keyPem } = await requestCertificate();
    const value = { certificateRequest: certificateRequest ?? Buffer.from(request) };
    this.#call.write({ operation: { $case: 'renew', value } });
    const answer = await Promise.race([this.inbox.next(), this.ended]);
    if (typeof answer !== 'string' && answer.$case === 'renewed') {
      return { certificatePem: answer.value.certificatePem, keyPem };
    }
    throw new Error(
      typeof answer !== 'string' && answer.$case === 'refused'
        ? fromRefused(answer.value)?.reason
        : String(answer),
    );
  }

  /** Says nothing more, and goes. */
  async leave(): Promise<void> {
    this.#call.end();
    await this.ended;
  }
}

type Told = NonNullable<ResolveResponse['message']>;
type Case<Kind extends Told['$case']> = Extract<Told, { $case: Kind }>['value'];

export interface NodePlayerOptions {
  readonly node: string;
  readonly dataIncarnation: string;
  readonly carried: Carried[];
  /** Whether fences are acknowledged as they come. */
  readonly acks: boolean;
  /** Sent instead of an inventory. */
  readonly first: ResolveRequest;
  /** Nothing is sent at all. */
  readonly isSilent: boolean;
}

export interface PresentWish {
  readonly presentation?: bigint;
  readonly replace?: boolean;
}

/** A data node with nothing behind it. */
export class NodePlayer {
  readonly inbox = new Inbox<Told>();
  readonly ended: Promise<Ended>;
  acks: boolean;
  readonly #call: ClientDuplexStream<ResolveRequest, ResolveResponse>;
  #lastCaller = 0;
  #lastBatch = 0n;
  #lastRequest = 0n;

  constructor(client: AuthorityServiceClient, given: Partial<NodePlayerOptions>) {
    this.acks = given.acks ?? true;
    this.#call = client.resolve();
    this.#call.on('data', ({ message }: ResolveResponse) => this.#receive(message));
    this.ended = new Promise((resolve) => {
      this.#call.on('error', (error: ServiceError) => resolve(endedBy(error)));
      this.#call.on('end', () => resolve('ended'));
    });
    const { dataIncarnation = 'dn_first', carried = [] } = given;
    const value = { dataIncarnation, endpoint: '127.0.0.1:4000', carried };
    if (given.isSilent === true) {
      return;
    }
    this.send(given.first ?? { message: { $case: 'inventory', value } });
  }

  send(request: ResolveRequest): void {
    this.#call.write(request);
  }

  /** Resolves when the inventory is answered. */
  reconciled(): Promise<Case<'reconciled'>> {
    return this.first('reconciled');
  }

  /** The first message of a kind. */
  async first<Kind extends Told['$case']>(kind: Kind): Promise<Case<Kind>> {
    type Message = Extract<Told, { $case: Kind }>;
    const found = await this.inbox.find((told): told is Message => told.$case === kind);
    return found.value as Case<Kind>;
  }

  introduce({ identity }: Player): number {
    this.#lastCaller += 1;
    const certificate = new X509Certificate(identity.certificatePem).raw;
    const value = { caller: this.#lastCaller, certificate };
    this.send({ message: { $case: 'introduction', value } });
    return this.#lastCaller;
  }

  /** Asks in one batch; each answer is the name of a refusal, or `granted`. */
  async ask(...questions: readonly Question[]): Promise<string[]> {
    return (await this.answers(...questions)).map(({ verdict }) =>
      verdict?.$case === 'refused' ? (fromRefused(verdict.value)?.reason ?? '') : 'granted',
    );
  }

  async answers(...questions: readonly Question[]): Promise<Answer[]> {
    return (await this.batch(...questions)).answers;
  }

  async batch(...questions: readonly Question[]): Promise<Case<'answers'>> {
    this.#lastBatch += 1n;
    const batch = this.#lastBatch;
    this.send({ message: { $case: 'batch', value: { batch, questions: [...questions] } } });
    type Answers = Extract<Told, { $case: 'answers' }>;
    const answers = await this.#orEnd(
      this.inbox.find(
        (told): told is Answers => told.$case === 'answers' && told.value.batch === batch,
      ),
    );
    return answers.value;
  }

  async present(caller: number, worker: Worker, wish: PresentWish = {}): Promise<string> {
    const [answer] = await this.ask(
      question(caller, worker, { operation: Operation.PRESENT, ...wish }),
    );
    return answer ?? '';
  }

  async observe(caller: number, worker: Worker, presentation = 1n): Promise<string> {
    const [answer] = await this.ask(question(caller, worker, { presentation }));
    return answer ?? '';
  }

  async reserve(caller: number, worker: Worker): Promise<Case<'admission'>> {
    const request = this.#request();
    const value = { request, caller, ...designationOf(worker) };
    this.send({ message: { $case: 'reserve', value } });
    type Admission = Extract<Told, { $case: 'admission' }>;
    const found = await this.#orEnd(
      this.inbox.find(
        (told): told is Admission => told.$case === 'admission' && told.value.request === request,
      ),
    );
    return found.value;
  }

  async activate(attachmentRef: string): Promise<Case<'recorded'>> {
    return this.#recorded('activate', attachmentRef);
  }

  async release(attachmentRef: string): Promise<Case<'recorded'>> {
    return this.#recorded('release', attachmentRef);
  }

  /** Admits and starts a terminal for a caller. */
  async possess(caller: number, worker: Worker): Promise<string> {
    const { verdict } = await this.reserve(caller, worker);
    if (verdict?.$case !== 'reservation') {
      throw new Error(verdict === undefined ? '' : fromRefused(verdict.value)?.reason);
    }
    const attachmentRef = verdict.value.grant?.attachmentRef ?? '';
    await this.activate(attachmentRef);
    return attachmentRef;
  }

  /** Takes nothing more of what is sent: the connection's windows fill. */
  stopReading(): void {
    this.#call.pause();
  }

  readOn(): void {
    this.#call.resume();
  }

  ack({ fence }: Fence): void {
    this.send({ message: { $case: 'fenceAck', value: { fence } } });
  }

  /** The fences that have come, as `scope reason`. */
  fences(): string[] {
    return this.inbox.all.flatMap((told) =>
      told.$case === 'fence' ? `${told.value.scope} ${told.value.reason}` : [],
    );
  }

  async leave(): Promise<void> {
    this.#call.end();
    await this.ended;
  }

  #receive(message: ResolveResponse['message']): void {
    if (message === undefined) {
      return;
    }
    if (message.$case === 'fence' && this.acks) {
      this.ack(message.value);
    }
    this.inbox.push(message);
  }

  async #recorded(kind: 'activate' | 'release', attachmentRef: string): Promise<Case<'recorded'>> {
    const request = this.#request();
    this.send({ message: { $case: kind, value: { request, attachmentRef } } });
    type Recorded = Extract<Told, { $case: 'recorded' }>;
    const found = await this.#orEnd(
      this.inbox.find(
        (told): told is Recorded => told.$case === 'recorded' && told.value.request === request,
      ),
    );
    return found.value;
  }

  #request(): bigint {
    this.#lastRequest += 1n;
    return this.#lastRequest;
  }

  async #orEnd<Found>(found: Promise<Found>): Promise<Found> {
    const first = await Promise.race([found, this.ended]);
    if (typeof first === 'string') {
      throw new Error(first);
    }
    return first as Found;
  }
}

export function question(caller: number, worker: Worker, given: Partial<Question> = {}): Question {
  return {
    operation: Operation.OBSERVE,
    caller,
    ...designationOf(worker),
    presentation: 1n,
    replace: false,
    ...given,
  };
}
