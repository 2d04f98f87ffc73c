/**
 * Observers in other languages are told what the reference is told, byte for byte.
 *
 * Each has a stack of its own on which everything has the same names, and each exchange is played to
 * it and to the reference; then their transcripts are compared.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { hasTool, needs } from '../stack/machine.js';
import { crashes, type Exchange, endings, looks, refusals } from './exchanges.js';
import { buildObserver, languages, needsOf, reference } from './observers.js';
import { type Observed, Seat } from './seat.js';

const exchanges = [...refusals, ...looks, ...endings, ...crashes].map(
  (exchange) => [exchange.name, exchange] as const,
);

const folder = mkdtempSync(join(tmpdir(), 'wh-observers-'));
afterAll(() => rmSync(folder, { recursive: true }));

/** What the reference was told, played once for all languages. */
const told = new Map<Exchange, Promise<string>>();
let seat: Seat;
beforeAll(async () => {
  seat = await Seat.open(reference);
});
afterAll(async () => await seat[Symbol.asyncDispose]());

function referenceTold(exchange: Exchange): Promise<string> {
  const before = told.get(exchange) ?? play(exchange, seat);
  told.set(exchange, before);
  return before;
}

async function play(exchange: Exchange, at: Seat): Promise<string> {
  const observed = await exchange.play(at);
  expect(lastOf(observed), observed.stderr).toMatchObject(exchange.last);
  expect(observed.code, observed.stderr).toBe(exchange.code);
  return exchange.settle?.(observed) ?? observed.transcript;
}

function lastOf({ transcript }: Observed): unknown {
  return JSON.parse(transcript.trimEnd().split('\n').at(-1) || '{}');
}

describe('the reference', () => {
  test.for(exchanges)('%s', async ([, exchange]) => {
    await referenceTold(exchange);
  });
});

describe.each(languages)('%s is told the same as the reference:', (language) => {
  const isHere = needsOf(language).every((tool) => hasTool(tool));
  let mine: Seat | undefined;
  beforeAll(async () => {
    if (isHere) {
      mine = await Seat.open(buildObserver(language, folder));
    }
  });
  afterAll(async () => await mine?.[Symbol.asyncDispose]());

  test.for(exchanges)('%s', async ([, exchange], context) => {
    needs(context, ...needsOf(language));
    const [ours, theirs] = await Promise.all([play(exchange, mine!), referenceTold(exchange)]);
    expect(ours).toBe(theirs);
  });
});
