/** `wheelhouse doctor`: whether this machine has what Wheelhouse needs. */
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import type { Command } from 'commander';
import type { Colours } from '../colours.js';
import { EXIT_DONE, EXIT_UNREACHABLE } from '../exit-codes.js';
import { troubles } from '../health.js';
import { acting, type Ending, type Invocation } from '../invocation.js';
import { isFree, isUp, PREFERRED_PORTS } from '../services.js';
import { formatTable, visible } from '../table.js';
import { type ServiceStatus, servicesOf } from './status.js';

const EXAMPLES = `
Exit code: 0 when everything that is needed is there and what runs is well, 4 otherwise.

Examples:
  wheelhouse doctor
  wheelhouse doctor --json`;

type Verdict = 'ok' | 'missing' | 'unwell' | 'not needed';

interface Finding {
  readonly what: string;
  readonly verdict: Verdict;
  readonly detail: string;
}

const NODE_MIN = [20, 19] as const;
const PROBE_MS = 10_000;

const run = promisify(execFile);

export function addDoctor(program: Command, ending: Ending): void {
  const command = program
    .command('doctor')
    .description('check what this machine has')
    .addHelpText('after', EXAMPLES);
  acting(ending, command, doctor);
}

async function doctor(invocation: Invocation): Promise<number> {
  const findings = [
    nodeVersion(),
    await tool('make', ['--version'], 'needed to install: apt-get install make'),
    await tool('g++', ['--version'], 'needed to install: apt-get install g++'),
    await tool('python3', ['--version'], 'needed to install: apt-get install python3'),
    stateFolder(invocation),
    await port(invocation, 'authority'),
    await port(invocation, 'data'),
    ...(await servicesOf(invocation)).map(service),
    await terminal(),
    await store(),
    await engine(),
  ];
  const rows = findings.map(({ what, verdict, detail }) => [
    what,
    paint(verdict, invocation.colours),
    visible(detail),
  ]);
  invocation.result(formatTable(['WHAT', 'IS', 'DETAIL'], rows), findings);
  const isAmiss = findings.some(({ verdict }) => verdict === 'missing' || verdict === 'unwell');
  return isAmiss ? EXIT_UNREACHABLE : EXIT_DONE;
}

function nodeVersion(): Finding {
  const [major = 0, minor = 0] = process.versions.node.split('.').map(Number);
  const isEnough = major > NODE_MIN[0] || (major === NODE_MIN[0] && minor >= NODE_MIN[1]);
  return {
    what: 'node',
    verdict: isEnough ? 'ok' : 'missing',
    detail: isEnough
      ? process.version
      : `${process.version}; at least ${NODE_MIN.join('.')} is needed`,
  };
}

async function tool(name: string, args: readonly string[], hint: string): Promise<Finding> {
  try {
    const { stdout } = await run(name, [...args], { timeout: PROBE_MS });
    return { what: name, verdict: 'ok', detail: stdout.split('\n')[0] ?? '' };
  } catch {
    return { what: name, verdict: 'missing', detail: hint };
  }
}

function stateFolder({ state }: Invocation): Finding {
  const what = 'state folder';
  const problem = state.problem();
  return problem === undefined
    ? { what, verdict: 'ok', detail: state.exists ? state.dir : `${state.dir}, made by up` }
    : { what, verdict: 'missing', detail: problem };
}

async function port({ state }: Invocation, plane: 'authority' | 'data'): Promise<Finding> {
  const wanted = PREFERRED_PORTS[plane];
  const what = `port ${wanted}`;
  const endpoints = state.endpoints();
  const ours = plane === 'authority' ? endpoints?.authority : endpoints?.data['local'];
  if (ours === `127.0.0.1:${wanted}` && isUp(state)) {
    return { what, verdict: 'ok', detail: `${plane} listens there` };
  }
  return (await isFree(wanted))
    ? { what, verdict: 'ok', detail: 'free' }
    : { what, verdict: 'not needed', detail: `taken; ${plane} will use another` };
}

/** A service that does not run is none that is amiss; one that runs is to serve in all its parts. */
function service({ service: what, endpoint, health, parts }: ServiceStatus): Finding {
  if (health === 'unreachable' || health === 'no identity') {
    const detail =
      health === 'unreachable' ? `${endpoint} does not answer` : 'no identity to ask with';
    return { what, verdict: 'not needed', detail };
  }
  const absent = troubles({ health, parts });
  const isWell = health === 'serving' && absent.length === 0;
  const words = absent.map(([part, meaning]) => `${part} is not serving: ${meaning}`);
  const detail = isWell ? `${endpoint} serving` : words.join('; ') || `${endpoint} not serving`;
  return { what, verdict: isWell ? 'ok' : 'unwell', detail };
}

/** Loads the native part and runs a program in a terminal. */
async function terminal(): Promise<Finding> {
  try {
    const { spawn } = await import('node-pty');
    const code = await new Promise<number>((resolve) => {
      spawn('/bin/sh', ['-c', 'exit 7'], {}).onExit(({ exitCode }) => resolve(exitCode));
    });
    return code === 7
      ? { what: 'a terminal', verdict: 'ok', detail: 'a program ran in one' }
      : { what: 'a terminal', verdict: 'missing', detail: `the program ended with ${code}` };
  } catch (error) {
    return { what: 'a terminal', verdict: 'missing', detail: messageOf(error) };
  }
}

async function store(): Promise<Finding> {
  try {
    const { default: Database } = await import('better-sqlite3');
    const database = new Database(':memory:');
    database.close();
    return { what: 'the store', verdict: 'ok', detail: 'better-sqlite3 loads' };
  } catch (error) {
    return { what: 'the store', verdict: 'missing', detail: messageOf(error) };
  }
}

/** For deploy/docker-compose.yml alone. */
async function engine(): Promise<Finding> {
  try {
    const { stdout } = await run('docker', ['version', '--format', '{{.Server.Version}}'], {
      timeout: PROBE_MS,
    });
    return { what: 'container engine', verdict: 'ok', detail: stdout.trim() };
  } catch {
    const detail = 'not there; only the compose deployment needs one';
    return { what: 'container engine', verdict: 'not needed', detail };
  }
}

function paint(verdict: Verdict, colours: Colours): string {
  switch (verdict) {
    case 'ok':
      return colours.good(verdict);
    case 'missing':
    case 'unwell':
      return colours.bad(verdict);
    case 'not needed':
      return colours.dim(verdict);
  }
}

function messageOf(error: unknown): string {
  return error instanceof Error ? (error.message.split('\n')[0] ?? '') : String(error);
}
