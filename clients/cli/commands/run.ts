/** `wheelhouse run`: a program in a worker's terminal, as that worker's agent. */
import { readFileSync } from 'node:fs';
import { constants } from 'node:os';
import { type Command, InvalidArgumentError } from 'commander';
import type { StreamEnd } from '#client/stream-end.js';
import type { Geometry } from '#gen/wheelhouse/data/v1/data.js';
import { kebab, type Refusal } from '#kernel/refusal.js';
import { AgentRun, actorOf, type RunRequest } from '../agent-run.js';
import { startDetached } from '../detached-run.js';
import { endSentence, endValue } from '../end-words.js';
import { EnvFileError, type Environment, parseAddition, parseEnvFile } from '../environment.js';
import {
  EXIT_DONE,
  EXIT_NOT_THE_PROGRAMS,
  programExitCode,
  runExitCodeOf,
  UsageError,
} from '../exit-codes.js';
import { acting, type Ending, type Invocation } from '../invocation.js';
import { answeringEndpointsOf } from '../operator.js';
import { DEFAULT_SIZE, Gate, Screen } from '../screen.js';
import { onEndingSignal } from '../signals.js';
import { parseSize } from '../size.js';
import { visible } from '../table.js';
import { isNameless, namelessHint } from '../usage-words.js';

interface RunOptions {
  readonly detach?: true;
  readonly size?: Geometry;
  readonly headless?: true;
  /** As given: checked, not read yet. */
  readonly env?: readonly string[];
  readonly envFile?: Environment;
}

/** What ended this command, if it was not the program's own end. */
interface EndedBy {
  signal: NodeJS.Signals | undefined;
}

/** Data hangs the program up and kills what is left after 2 s; then it says so. */
const ENDING_MS = 5_000;

const EXAMPLES = `
The command runs on the worker's node, in its workspace, with a clean environment and what -e adds.
A stdin that is no terminal is passed on; its end sends nothing. The program ends with this command.

Node, and so npx, would take --env-file for itself: with npx say npx -- wheelhouse run …, or use
./wheelhouse of the checkout.

Exit code: the program's own; 128 and the number of the signal that ended it; 125 for what is not
the program's (usage, a refusal, nobody answers, the terminal closed under it); 126 and 127 for a
command that cannot be executed or is not there.

Examples:
  wheelhouse run demo -- bash
  wheelhouse run demo -e TERM -e API_KEY -- claude
  wheelhouse run demo --env-file ./agent.env -- claude
  wheelhouse run demo -d -- ./long-job.sh        in the background, without a reader
  wheelhouse run demo --size 120x40 --headless -- htop`;

export function addRun(program: Command, ending: Ending): void {
  const command = program
    .command('run')
    .description('run a program in a worker’s terminal, as its agent')
    .argument('<name>', 'the worker')
    .argument('<command...>', 'after --: the program and its arguments')
    .usage('[options] <name> -- <command> [argument...]')
    .option('-d, --detach', 'in the background, without a reader')
    .option('--size <COLSxROWS>', 'the terminal’s size; by default this one’s', parseSizeOption)
    .option('--headless', 'show nothing')
    .option('-e, --env <NAME[=VALUE]>', 'add a variable, by default the caller’s', addVariable)
    .option('--env-file <file>', 'add the variables of a file (see below for npx)', readEnvFile)
    .addHelpText('after', EXAMPLES);
  acting<RunOptions>(ending, command, run, runExitCodeOf);
}

async function run(
  invocation: Invocation,
  operands: readonly string[],
  options: RunOptions,
): Promise<number> {
  if (isNameless(operands, process.argv)) {
    throw new UsageError(namelessHint(process.argv));
  }
  const [worker = '', ...argv] = operands;
  const isHeadless = options.headless === true || options.detach === true;
  const screen = new Screen((bytes) => forward(bytes));
  let forward: (bytes: Buffer) => void = () => undefined;
  const request: RunRequest = {
    worker,
    as: invocation.as,
    argv,
    env: { ...options.envFile, ...additionsOf(invocation, options.env ?? []) },
    geometry: options.size ?? (isHeadless ? undefined : screen.size) ?? DEFAULT_SIZE,
    isHeadless,
  };
  const roleName = invocation.as ?? actorOf(invocation.state, worker);
  const { authority } = answeringEndpointsOf(invocation, roleName);
  if (options.detach === true) {
    await startDetached(invocation.state, request);
    invocation.result(worker, { worker });
    return EXIT_DONE;
  }
  return await runHere(invocation, { authority, request }, screen, (write) => {
    forward = write;
  });
}

/** Runs in the foreground: shows, forwards, and ends with the program. */
async function runHere(
  invocation: Invocation,
  { authority, request }: { readonly authority: string; readonly request: RunRequest },
  screen: Screen,
  onTyped: (write: (bytes: Buffer) => void) => void,
): Promise<number> {
  const gate = new Gate();
  let resizeRefusal: Refusal | undefined;
  using agentRun = await AgentRun.start(invocation.state, authority, request, {
    take: (bytes) => gate.pass(() => screen.show(bytes)),
    resizeRefused: (refusal) => {
      resizeRefusal = refusal;
    },
  });
  const ending = endOnSignal(agentRun);
  // Before raw mode, in which a line no longer begins at the left.
  announce(invocation, agentRun, request, screen);
  if (!request.isHeadless) {
    onTyped((bytes) => void forwardInput(agentRun, screen, bytes));
    attachScreen(agentRun, screen, ending);
  }
  gate.open();
  const end = await agentRun.ended;
  const isClean = end.kind === 'closed' && end.exit?.kind === 'code';
  await screen.leave({ undoModes: !request.isHeadless && !isClean });
  if (resizeRefusal !== undefined) {
    invocation.note(`a change of size was refused: ${kebab(resizeRefusal.reason)}`);
  }
  return conclude(invocation, end, ending);
}

/** Told before the program's first byte, and only where a person looks at its terminal. */
function announce(
  { as, state, note }: Invocation,
  { worker }: AgentRun,
  { worker: name, argv, isHeadless }: RunRequest,
  screen: Screen,
): void {
  if (screen.isTerminal && !isHeadless) {
    const { role, name: agent } = as ?? actorOf(state, name);
    const where = worker === undefined ? '' : `, in ${visible(worker.workspace)}`;
    note(`running ${visible(argv[0] ?? '')} at ${name} as ${role} ${agent}${where}`);
  }
}

function attachScreen(agentRun: AgentRun, screen: Screen, ending: EndedBy): void {
  if (!screen.enterRaw()) {
    screen.readInput();
  }
  screen.onResize((size) => agentRun.possession.resize(size));
  // Nobody sees the output any more: the terminal ends, as when its window is closed.
  void screen.broken.then(() => {
    ending.signal = 'SIGPIPE';
    agentRun.possession.abort();
  });
}

/** One piece at a time: what the terminal has not taken is not read from the keyboard either. */
async function forwardInput(agentRun: AgentRun, screen: Screen, bytes: Buffer): Promise<void> {
  screen.pauseInput();
  await agentRun.possession.write(Buffer.from(bytes));
  screen.resumeInput();
}

/** A signal ends the terminal; one more does not wait for it. */
function endOnSignal({ possession }: AgentRun): EndedBy {
  const ending: EndedBy = { signal: undefined };
  onEndingSignal(
    (signal) => {
      ending.signal = signal;
      possession.end();
      setTimeout(() => possession.abort(), ENDING_MS).unref();
    },
    () => possession.abort(),
  );
  return ending;
}

function conclude(invocation: Invocation, end: StreamEnd, { signal }: EndedBy): number {
  if (signal !== undefined) {
    return 128 + constants.signals[signal];
  }
  if (end.kind === 'closed' && end.reason === 'ENDED' && end.exit !== undefined) {
    return programExitCode(end.exit);
  }
  const text = invocation.isJson
    ? JSON.stringify(endValue(end, undefined))
    : endSentence(end, undefined);
  invocation.warn(text);
  return EXIT_NOT_THE_PROGRAMS;
}

function parseSizeOption(text: string): Geometry {
  const size = parseSize(text);
  if (size === undefined) {
    throw new InvalidArgumentError('It is COLSxROWS, as 120x40.');
  }
  return size;
}

function addVariable(text: string, sofar: readonly string[] = []): readonly string[] {
  if (parseAddition(text, process.env) === undefined) {
    throw new InvalidArgumentError('It is NAME or NAME=VALUE.');
  }
  return [...sofar, text];
}

/** A variable that the caller has not is left out, and said to be. */
function additionsOf({ note }: Invocation, texts: readonly string[]): Environment {
  return Object.fromEntries(
    texts.flatMap((text) => {
      const entries = Object.entries(parseAddition(text, process.env) ?? {});
      if (entries.length === 0) {
        note(`-e ${text}: not set here, so not added`);
      }
      return entries;
    }),
  );
}

function readEnvFile(path: string, sofar: Environment = {}): Environment {
  try {
    return { ...sofar, ...parseEnvFile(readFileSync(path, 'utf8')) };
  } catch (error) {
    const why = error instanceof Error ? error.message : 'it cannot be read';
    throw new InvalidArgumentError(error instanceof EnvFileError ? `${path}, ${why}.` : `${why}.`);
  }
}
