/**
 * The catalogue of refusals: each name with its gRPC status and the sentence that says what to do next.
 *
 * proto/wheelhouse/refusal/v1 says what each name means; docs/refusals.md is generated from both.
 */
import { CloseReason, Reason } from '#gen/wheelhouse/refusal/v1/refusal.js';

export type ReasonName = Exclude<keyof typeof Reason, 'UNSPECIFIED'>;
export type CloseReasonName = Exclude<keyof typeof CloseReason, 'UNSPECIFIED'>;

/** What the refused may know. Keys in lowerCamelCase, with the unit in the key. */
export type Facts = Readonly<Record<string, string>>;

export interface Refusal {
  readonly reason: ReasonName;
  readonly facts: Facts;
}

/** By gRPC's own test: retry this call, redo a larger step, or mend the state first. */
export type StatusName =
  | 'NOT_FOUND'
  | 'FAILED_PRECONDITION'
  | 'PERMISSION_DENIED'
  | 'UNAUTHENTICATED'
  | 'ABORTED'
  | 'RESOURCE_EXHAUSTED'
  | 'OUT_OF_RANGE'
  | 'INVALID_ARGUMENT'
  | 'UNAVAILABLE';

interface Entry {
  readonly status: StatusName;
  /** Ends in what to do next. */
  readonly advice: string;
}

const NAME_RULE = '1 to 63 characters of a-z 0-9 . _ -, beginning with a letter or a digit';

/** `Record` without `Partial`: a new name does not compile until it is ruled here. */
export const catalogue: Readonly<Record<ReasonName, Entry>> = {
  CALLER_UNIDENTIFIED: {
    status: 'UNAUTHENTICATED',
    advice:
      'The certificate names no role; use an identity issued by this system (wheelhouse identity list).',
  },
  CERTIFICATE_EXPIRED: {
    status: 'UNAUTHENTICATED',
    advice: 'The certificate is past its end; issue a new one (wheelhouse identity issue).',
  },
  ROLE_NOT_HUMAN_CONTROL: {
    status: 'PERMISSION_DENIED',
    advice:
      'Only the operator may ask this; use a human-control identity (--as human-control/NAME).',
  },
  ROLE_NOT_AGENT: {
    status: 'PERMISSION_DENIED',
    advice: 'Only an agent may ask this; use the agent’s identity (--as agent/NAME).',
  },
  ROLE_NOT_SERVICE: {
    status: 'PERMISSION_DENIED',
    advice: 'Only the services ask one another this; there is nothing to do with it from outside.',
  },
  CONTROL_CHANNEL_OCCUPIED: {
    status: 'FAILED_PRECONDITION',
    advice: 'Another operator is at the controls; try again when they have left.',
  },
  CONTROL_CHANNEL_NOT_BOUND: {
    status: 'FAILED_PRECONDITION',
    advice: 'The operator’s Bind has ended; bind again first.',
  },
  AGENT_CHANNEL_NOT_BOUND: {
    status: 'FAILED_PRECONDITION',
    advice: 'The agent’s Bind has ended; bind again first.',
  },
  PEERS_EXHAUSTED: {
    status: 'RESOURCE_EXHAUSTED',
    advice: 'Too many agents, or too many streams of yours, are bound; end some first.',
  },
  WORKER_UNKNOWN: {
    status: 'NOT_FOUND',
    advice: 'No worker has this name; see wheelhouse worker list.',
  },
  WORKER_NOT_OPENED_BY_CALLER: {
    status: 'PERMISSION_DENIED',
    advice: 'Another operator opened this worker; only they may look into it.',
  },
  WORKER_CLOSED: {
    status: 'FAILED_PRECONDITION',
    advice: 'The worker is closed; open it again with wheelhouse worker reopen.',
  },
  WORKER_GENERATION_ADVANCED: {
    status: 'FAILED_PRECONDITION',
    advice: 'The worker was reopened since; look at wheelhouse worker list and name it anew.',
  },
  LOCUS_NOT_OCCUPIED: {
    status: 'FAILED_PRECONDITION',
    advice: 'Nobody works there now; start one with wheelhouse run, or wait with watch --wait.',
  },
  CARRIER_NOT_ATTACHED: {
    status: 'FAILED_PRECONDITION',
    advice: 'The agent has no terminal at this moment; try again shortly.',
  },
  CARRIER_ATTACHED_ELSEWHERE: {
    status: 'FAILED_PRECONDITION',
    advice: 'The terminal has changed hands; look again.',
  },
  OWNER_UNREACHABLE: {
    status: 'UNAVAILABLE',
    advice: 'The data node that carries the worker is away; see wheelhouse status and try again.',
  },
  NOT_CARRIED_HERE: {
    status: 'FAILED_PRECONDITION',
    advice: 'Ask the data node that carries the worker.',
  },
  PRESENTATION_ENDED: {
    status: 'FAILED_PRECONDITION',
    advice: 'This look has ended; open a new one.',
  },
  PRESENTATION_EXISTS: {
    status: 'FAILED_PRECONDITION',
    advice:
      'You already watch this worker elsewhere; end that, or take its place with watch --replace.',
  },
  WORKER_NAME_TAKEN: {
    status: 'FAILED_PRECONDITION',
    advice:
      'A worker of this name exists; if it is closed, use wheelhouse worker reopen, else choose another name.',
  },
  WORKER_CLOSING: {
    status: 'FAILED_PRECONDITION',
    advice:
      'The worker is still being closed; it finishes when its data node answers. Try again then.',
  },
  WORKER_NOT_CLOSED: {
    status: 'FAILED_PRECONDITION',
    advice: 'The worker is open; there is nothing to reopen.',
  },
  ACTOR_NOT_YOURS: {
    status: 'PERMISSION_DENIED',
    advice: 'Another operator’s workers are for this actor; choose another with --actor.',
  },
  ACTOR_WITHOUT_WORKER: {
    status: 'FAILED_PRECONDITION',
    advice: 'None of your workers is for this actor; open one first (wheelhouse worker open).',
  },
  WORKERS_EXHAUSTED: {
    status: 'RESOURCE_EXHAUSTED',
    advice: 'No more workers are allowed; reopen a closed one instead.',
  },
  WORKER_NOT_YOURS: {
    status: 'PERMISSION_DENIED',
    advice: 'This agent has no such worker; check the name and the identity.',
  },
  LOCUS_OCCUPIED: {
    status: 'FAILED_PRECONDITION',
    advice: 'An agent already works there; wait for it to end, or open another worker.',
  },
  CARRIER_ALREADY_ATTACHED: {
    status: 'FAILED_PRECONDITION',
    advice: 'This occupant already has its terminal; end that one first.',
  },
  SPAWN_FAILED: {
    status: 'FAILED_PRECONDITION',
    advice: 'The program was not started; see the cause in the facts.',
  },
  INPUT_GAP: {
    status: 'OUT_OF_RANGE',
    advice: 'Input must continue where the last one ended; send from the expected position.',
  },
  TERMINAL_NOT_READING: {
    status: 'RESOURCE_EXHAUSTED',
    advice: 'The program does not read its terminal; send the rest when it does.',
  },
  GEOMETRY_INVALID: {
    status: 'INVALID_ARGUMENT',
    advice: 'Give rows and columns from 1 to 65535.',
  },
  TERMINALS_EXHAUSTED: {
    status: 'RESOURCE_EXHAUSTED',
    advice: 'The node runs as many terminals as it may; end one first.',
  },
  REQUEST_INVALID: {
    status: 'INVALID_ARGUMENT',
    advice: `Mend the field named in the facts (a name is ${NAME_RULE}).`,
  },
  CERTIFICATE_REQUEST_INVALID: {
    status: 'INVALID_ARGUMENT',
    advice: 'Send a self-signed PKCS #10 request for an ECDSA P-256 key.',
  },
  AUTHORITY_UNREACHABLE: {
    status: 'UNAVAILABLE',
    advice: 'Authority cannot be asked; see wheelhouse status and try again.',
  },
  JOURNAL_FULL: {
    status: 'RESOURCE_EXHAUSTED',
    advice: 'The journal’s disk is nearly full; free some space. Closing still works.',
  },
  SERVICE_DRAINING: {
    status: 'UNAVAILABLE',
    advice: 'The service is going down; try again when it is back.',
  },
  STORE_IN_USE: {
    status: 'FAILED_PRECONDITION',
    advice:
      'Another process holds this state folder; end it (wheelhouse down) or use another --state.',
  },
  AGENTS_RUNNING: {
    status: 'FAILED_PRECONDITION',
    advice: 'Agents are at work and would be ended; say --yes to end them.',
  },
};

/** The sentence people read: advice, then the facts. */
export function sentenceOf(refusal: Refusal): string {
  const facts = Object.entries(refusal.facts).map(([key, value]) => `${key}=${value}`);
  const { advice } = catalogue[refusal.reason];
  return facts.length === 0 ? advice : `${advice} (${facts.join(', ')})`;
}

/** UPPER_SNAKE where programs read, kebab-case where people do. */
export function kebab(name: ReasonName | CloseReasonName): string {
  return name.toLowerCase().replaceAll('_', '-');
}

const reasonNames = new Map<number, ReasonName>(
  Object.keys(catalogue).map((name) => [Reason[name as ReasonName], name as ReasonName]),
);

const closeReasonNames = new Map<number, CloseReasonName>(
  Object.entries(CloseReason)
    .filter(([name]) => name !== 'UNSPECIFIED')
    .map(([name, value]) => [value, name as CloseReasonName]),
);

/** Undefined for a number that this build does not know. */
export function reasonName(value: number): ReasonName | undefined {
  return reasonNames.get(value);
}

/** Undefined for a word that this build does not know. */
export function parseReasonName(word: string): ReasonName | undefined {
  return Object.hasOwn(catalogue, word) ? (word as ReasonName) : undefined;
}

/** Undefined for a number that this build does not know. */
export function closeReasonName(value: number): CloseReasonName | undefined {
  return closeReasonNames.get(value);
}
