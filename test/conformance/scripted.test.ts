/** What no real service does on request, by doubles: acknowledging is writing, a gap is a broken stream, and a newer service is met as the reference meets it. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { PresentCall } from '#client/service-double.js';
import type { PresentResponse } from '#gen/wheelhouse/data/v1/data.js';
import { eventually, within } from '../stack/eventually.js';
import { hasTool, needs } from '../stack/machine.js';
import { closed, DoubledServices, opened, output } from './doubled-services.js';
import { FullPipe } from './full-pipe.js';
import { buildObserver, languages, needsOf, type ObserverCommand, reference } from './observers.js';

const folder = mkdtempSync(join(tmpdir(), 'wh-scripted-'));
afterAll(() => rmSync(folder, { recursive: true }));

interface Told {
  readonly code: number | null;
  readonly transcript: string;
}

/** Runs an observer against a script; `stdout` is a descriptor, or nobody's. */
async function told(
  { file, args, env }: ObserverCommand,
  services: DoubledServices,
  stdout: number | 'ignore' = 'ignore',
  meanwhile: () => Promise<void> = async () => undefined,
): Promise<Told> {
  const path = join(services.stateDir, 'transcript');
  const mine = ['worker', '--state', services.stateDir, '--as', 'human-control/operator'];
  const child = spawn(file, [...args, ...mine, '--transcript', path], {
    env: { ...process.env, ...env },
    stdio: ['ignore', stdout, 'ignore'],
  });
  try {
    const ended = once(child, 'close');
    await meanwhile();
    await within('the end of the observer', 30_000, ended);
  } finally {
    child.kill('SIGKILL');
  }
  return { code: child.exitCode, transcript: readFileSync(path, 'utf8') };
}

interface Script {
  readonly events: readonly PresentResponse['event'][];
  /** Whether the call ends well after them; else it stays. */
  readonly ends?: boolean;
  /** What the last line says. */
  readonly last: Readonly<Record<string, unknown>>;
  readonly code: number;
}

const lost = { event: 'closed', reason: 'TRANSPORT_LOST', acked_seq: '10' };
const end: PresentResponse['event'] = {
  $case: 'end',
  value: { outSeq: 10n, exit: { how: { $case: 'code', value: 5 } } },
};
const abc = output(7n, 'abc');

const scripts: Readonly<Record<string, Script>> = {
  'a gap is a broken stream: nothing after it is shown': {
    events: [opened, abc, output(11n, 'def')],
    last: lost,
    code: 4,
  },
  'a reason of a newer service is an end that nobody can name': {
    events: [opened, abc, closed(4711)],
    last: lost,
    code: 4,
  },
  'an event of a newer service is passed over': {
    events: [opened, undefined, abc, closed(2)],
    last: { event: 'closed', reason: 'RELEASED', acked_seq: '10', produced_seq: '12' },
    code: 3,
  },
  'after End everything is here, though Closed was lost': {
    events: [opened, abc, end],
    ends: true,
    last: { event: 'closed', reason: 'ENDED', acked_seq: '10', exit_code: 5 },
    code: 0,
  },
  'a call that ends without a word is a lost transport': {
    events: [opened, abc],
    ends: true,
    last: lost,
    code: 4,
  },
  'what is closed before it began is refused by that name': {
    events: [closed(5)],
    last: { event: 'refused', reason: 'WORKER_CLOSED', facts: {} },
    code: 3,
  },
};

function play({ events, ends = false }: Script): Promise<DoubledServices> {
  return DoubledServices.start((call) => {
    for (const event of events) {
      call.write({ event });
    }
    if (ends) {
      call.end();
    }
  });
}

describe.each(['reference', ...languages] as const)('%s:', (observer) => {
  const needed = observer === 'reference' ? [] : needsOf(observer);
  let command: ObserverCommand;
  beforeAll(() => {
    if (needed.every((tool) => hasTool(tool))) {
      command = observer === 'reference' ? reference : buildObserver(observer, folder);
    }
  });

  test.for(Object.entries(scripts))('%s', async ([, script], context) => {
    needs(context, ...needed);
    using services = await play(script);
    using again = await play(script);
    const [mine, theirs] = await Promise.all([told(command, services), told(reference, again)]);
    expect(JSON.parse(mine.transcript.trimEnd().split('\n').at(-1)!)).toMatchObject(script.last);
    expect(mine.code).toBe(script.code);
    expect(mine).toEqual(theirs);
  });

  test('who answers as authority with data’s certificate is turned away', async (context) => {
    needs(context, ...needed);
    using services = await DoubledServices.start(() => undefined, 'data');
    expect(await told(command, services)).toEqual({
      code: 4,
      transcript: '{"event":"unreachable","service":"authority"}\n',
    });
  });

  test('nothing is acknowledged before stdout has it', async (context) => {
    needs(context, ...needed);
    using pipe = new FullPipe(join(folder, `${observer}-stdout`));
    let call: PresentCall | undefined;
    using services = await DoubledServices.start((opening) => {
      call = opening;
      opening.write({ event: opened });
      opening.write({ event: abc });
    });
    const { code } = await told(command, services, pipe.writer, async () => {
      await eventually('the look has begun', () => call);
      // An absence: long after an eager client would have told.
      await delay(700);
      expect(services.acks).toEqual([]);
      pipe.drain();
      await eventually('what was written is acknowledged', () => services.acks.at(-1) === 10n);
      call?.write({ event: closed(2) });
    });
    expect(code).toBe(3);
  });
});
