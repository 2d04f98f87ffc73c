/** A refusal and a silence in a sentence for people: what the facts allow beyond the catalogue's advice. */
import type { UnreachableError } from '#client/call-errors.js';
import { type Facts, type Refusal, sentenceOf } from '#kernel/refusal.js';

/** Ends in what to do next. Falls back on the catalogue's, which lists the facts. */
export function refusalSentence(refusal: Refusal): string {
  return ownSentence(refusal) ?? sentenceOf(refusal);
}

function ownSentence({ reason, facts }: Refusal): string | undefined {
  switch (reason) {
    case 'SPAWN_FAILED':
      return spawnSentence(facts['cause'], facts['file'] ?? '');
    case 'REQUEST_INVALID':
      return requestSentence(facts);
    case 'CALLER_UNIDENTIFIED':
      // Found missing here, by ourselves: the sentence says what to do.
      return facts['next'] === undefined ? undefined : `${facts['found']}; ${facts['next']}.`;
    case 'STORE_IN_USE':
      return facts['up'] === undefined
        ? undefined
        : `The services of ${facts['store']} are up already (process ${facts['up']}${placeWords(facts)}); ` +
            'use them, end them with wheelhouse down, or name another folder with --state.';
    default:
      return undefined;
  }
}

function spawnSentence(cause: string | undefined, file: string): string | undefined {
  const shown = JSON.stringify(file);
  switch (cause) {
    case 'not-found':
      return file.includes('/')
        ? `There is no program ${shown} on the worker’s node; a path is taken from the worker’s workspace.`
        : `There is no program ${shown} on the worker’s PATH; install it there, or give its path.`;
    case 'not-executable':
      return `The program ${shown} cannot be executed by the worker’s user; see its permissions.`;
    case 'workspace-missing':
      return `The workspace ${shown} is not a folder that the worker’s user may enter; make it, or open a worker with another --workspace.`;
    case 'refused-by-system':
      return `The system of the worker’s node did not start ${shown}; see the log of data there.`;
    default:
      return undefined;
  }
}

function requestSentence({ field, rule, value }: Facts): string | undefined {
  if (field === undefined || rule === undefined) {
    return undefined;
  }
  const given = value === undefined ? '' : `, not ${JSON.stringify(value)}`;
  return `${field} must be ${rule}${given}.`;
}

function placeWords({ authority, data }: Facts): string {
  return authority === undefined ? '' : `, authority=${authority}${data ? ` data=${data}` : ''}`;
}

/** What the transport saw, by its cause; programs get it whole. */
const CAUSES: readonly (readonly [RegExp, string])[] = [
  [/ECONNREFUSED/, 'nobody listens there'],
  [/ENOTFOUND|EAI_AGAIN|Name resolution failed/, 'its host has no address'],
  [/EHOSTUNREACH|ENETUNREACH/, 'there is no way to its host'],
  [/ETIMEDOUT|DEADLINE_EXCEEDED/, 'no answer in time'],
  [/ECONNRESET|EPIPE|socket hang up/, 'the connection broke'],
  [/altnames|certificate|self.signed|UNABLE_TO_/i, 'the certificates do not fit one another'],
];

export function silenceSentence({ service, why }: UnreachableError): string {
  if (service === 'authority') {
    // Nobody was asked: it is not known where.
    return why;
  }
  const known = CAUSES.find(([pattern]) => pattern.test(why))?.[1];
  return `${service} gave no answer: ${known ?? why.replace(/^[A-Z_]+: /, '')}`;
}
