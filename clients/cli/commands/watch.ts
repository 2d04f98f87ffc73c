/** `wheelhouse watch`: the operator's look at a worker's terminal, byte for byte. */
import { setTimeout as sleep } from 'node:timers/promises';
import { type Command, InvalidArgumentError } from 'commander';
import { RefusedError } from '#client/call-errors.js';
import { connect, type DataConnection } from '#client/connect.js';
import { type Opening, Presentation, type PresentationTerms } from '#client/presentation.js';
import type { StreamEnd } from '#client/stream-end.js';
import { LOCAL_NODE } from '../deployment-identities.js';
import { DetachKeys } from '../detach-keys.js';
import {
  endAdvice,
  endSentence,
  endValue,
  refusalNameOf,
  type Since,
  watchExitCode,
} from '../end-words.js';
import { EXIT_DONE } from '../exit-codes.js';
import { acting, type Ending, type Invocation } from '../invocation.js';
import { asOperator, designate, type Operator } from '../operator.js';
import { Gate, Screen } from '../screen.js';
import { onEndingSignal } from '../signals.js';
import { formatSize } from '../size.js';

interface WatchOptions {
  readonly generation?: bigint;
  readonly holdLimit?: number;
  readonly wait?: true;
  readonly replace?: true;
}

const HOLD_LIMIT_MAX_S = 30;
/** Short at first: what a program prints before it is seen is missed. */
const WAIT_FIRST_MS = 50;
const WAIT_LONGEST_MS = 1_000;

/** Refusals that say only that nobody is there yet. */
const VACANCIES: readonly string[] = ['LOCUS_NOT_OCCUPIED', 'CARRIER_NOT_ATTACHED'];

const EXAMPLES = `
Nothing but the terminal's bytes goes to stdout, and nothing earlier than now is shown.
With --wait it begins at the position at which it got in: the first moments of a program may be missed.
With --hold-limit 0 the agent is never held, and so the look ends when it cannot keep up (lagging).
Leave with q, Ctrl-C or Ctrl-]; the agent goes on. Exit code: 0 ended or left, 3 refused or
closed by name, 4 transport lost or nobody answers.

Examples:
  wheelhouse watch demo
  wheelhouse watch demo --wait                wait until somebody works there
  wheelhouse watch demo --hold-limit 0        never hold the agent, however slow this reader
  wheelhouse watch demo > session.raw         the exact bytes, until the program ends`;

export function addWatch(program: Command, ending: Ending): void {
  const command = program
    .command('watch')
    .description('look at a worker’s terminal, live')
    .argument('<name>', 'the worker')
    .option('--generation <n>', 'only this generation of the worker', parseGeneration)
    .option(
      '--hold-limit <seconds>',
      'how long this reader may hold the terminal: 0 to 30, by default 10',
      parseHoldLimit,
    )
    .option('--wait', 'wait while nobody works there')
    .option('--replace', 'take the place of a look of yours elsewhere')
    .addHelpText('after', EXAMPLES);
  acting<WatchOptions>(ending, command, watch);
}

async function watch(
  invocation: Invocation,
  [name = '']: readonly string[],
  options: WatchOptions,
): Promise<number> {
  return await asOperator(invocation, async (operator) => {
    const { designation, worker } = await designate(operator.workers, name, options.generation);
    const node = worker?.dataNode ?? LOCAL_NODE;
    const endpoint = worker?.dataEndpoint || operator.endpoints.data[node];
    if (endpoint === undefined) {
      throw new RefusedError({ reason: 'OWNER_UNREACHABLE', facts: { node } });
    }
    using data = connect(endpoint, 'data', operator.control.identity);
    const terms = {
      worker: designation,
      holdLimitMs: options.holdLimit === undefined ? undefined : options.holdLimit * 1000,
      replace: options.replace === true,
    };
    return await look({ invocation, operator, data, name, terms }, options.wait === true);
  });
}

interface Looking {
  readonly invocation: Invocation;
  readonly operator: Operator;
  readonly data: DataConnection;
  readonly name: string;
  readonly terms: PresentationTerms;
}

async function look(looking: Looking, mayWait: boolean): Promise<number> {
  const leaving = new AbortController();
  const keys = new DetachKeys();
  const screen = new Screen((bytes) => {
    if (keys.feed(bytes)) {
      leaving.abort();
    }
  });
  void screen.broken.then(() => leaving.abort());
  onEndingSignal(() => leaving.abort());
  let end: StreamEnd | undefined;
  try {
    const presentation = await openWhenThere(looking, screen, mayWait, leaving.signal);
    end = presentation && (await watchToItsEnd(presentation, leaving.signal));
  } finally {
    await screen.leave({ undoModes: true });
  }
  if (end === undefined) {
    looking.invocation.note('left before anybody came');
    return EXIT_DONE;
  }
  const since = end.kind === 'lost' ? await askAgain(looking) : undefined;
  report(looking, end, since);
  return watchExitCode(end);
}

/** Undefined when the operator left first. Throws every refusal but that nobody is there. */
async function openWhenThere(
  looking: Looking,
  screen: Screen,
  mayWait: boolean,
  leaving: AbortSignal,
): Promise<Presentation | undefined> {
  const { data, invocation, name, terms } = looking;
  let delayMs = WAIT_FIRST_MS;
  while (!leaving.aborted) {
    const gate = new Gate();
    try {
      const presentation = await Presentation.open(data, terms, {
        take: (bytes) => gate.pass(() => screen.show(bytes)),
      });
      announce(looking, presentation.opening, screen);
      screen.enterRaw();
      gate.open();
      return presentation;
    } catch (error) {
      if (!mayWait || !isVacancy(error)) {
        throw error;
      }
      if (delayMs === WAIT_FIRST_MS) {
        invocation.note(`${name}: nobody works there yet; waiting`);
      }
    }
    await sleep(delayMs, undefined, { signal: leaving }).catch(() => undefined);
    delayMs = Math.min(delayMs * 1.5, WAIT_LONGEST_MS);
  }
  return undefined;
}

function isVacancy(error: unknown): boolean {
  return error instanceof RefusedError && VACANCIES.includes(error.refusal.reason);
}

function announce(looking: Looking, { geometry, outSeq }: Opening, screen: Screen): void {
  const { invocation, name, terms } = looking;
  if (invocation.isJson) {
    const generation = Number(terms.worker.generation);
    const opened = { watching: name, generation, outSeq: Number(outSeq), ...geometry };
    invocation.warn(JSON.stringify(opened));
    return;
  }
  const here = screen.size;
  const isSmaller = here !== undefined && (here.cols < geometry.cols || here.rows < geometry.rows);
  const yours = here === undefined ? '' : `, yours ${formatSize(here)}`;
  const advice = isSmaller ? ' (make yours larger to see it as it is)' : '';
  invocation.note(
    `watching ${name}: its terminal is ${formatSize(geometry)}${yours}${advice}; ` +
      `nothing earlier is shown; ${process.stdin.isTTY ? 'q, Ctrl-C or Ctrl-]' : 'Ctrl-C'} leaves`,
  );
}

async function watchToItsEnd(presentation: Presentation, leaving: AbortSignal): Promise<StreamEnd> {
  const detach = (): void => void presentation.detach();
  if (leaving.aborted) {
    detach();
  }
  leaving.addEventListener('abort', detach);
  return await presentation.ended;
}

/** A fence under flood leaves no reason: asking once more, for the same generation, tells it. */
async function askAgain({ data, terms }: Looking): Promise<Since> {
  try {
    const again = await Presentation.open(
      data,
      { ...terms, replace: false },
      { take: () => undefined },
    );
    await again.detach();
    return undefined;
  } catch (error) {
    return refusalNameOf(error);
  }
}

function report({ invocation, name, terms }: Looking, end: StreamEnd, since: Since): void {
  if (invocation.isJson) {
    invocation.warn(JSON.stringify(endValue(end, since)));
  } else if (watchExitCode(end) === EXIT_DONE) {
    invocation.note(endSentence(end, since));
  } else {
    invocation.warn(endSentence(end, since));
  }
  const advice = endAdvice(end, { name, holdLimitMs: terms.holdLimitMs });
  if (advice !== undefined) {
    invocation.note(advice);
  }
}

function parseGeneration(text: string): bigint {
  if (!/^[1-9]\d{0,18}$/.test(text)) {
    throw new InvalidArgumentError('It is a whole number from 1 on.');
  }
  return BigInt(text);
}

function parseHoldLimit(text: string): number {
  const seconds = Number(text);
  if (text.trim() === '' || !(seconds >= 0 && seconds <= HOLD_LIMIT_MAX_S)) {
    throw new InvalidArgumentError(`It is a number of seconds from 0 to ${HOLD_LIMIT_MAX_S}.`);
  }
  return seconds;
}
