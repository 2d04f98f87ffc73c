/** The container engine of this machine, as its command has it. */
import { execFile, spawnSync } from 'node:child_process';

export interface Ran {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

interface RunOptions {
  readonly env?: Readonly<Record<string, string>>;
  readonly input?: string;
  readonly timeoutMs?: number;
}

/** A build of everything from nothing takes two minutes on two cores. */
const TIMEOUT_MS = 540_000;

/** Runs a command to its end, whatever its code. */
export function run(
  command: string,
  args: readonly string[],
  { env = {}, input, timeoutMs = TIMEOUT_MS }: RunOptions = {},
): Promise<Ran> {
  return new Promise((resolve) => {
    const options = {
      env: { ...process.env, ...env },
      timeout: timeoutMs,
      maxBuffer: 256 * 1024 * 1024,
    };
    const child = execFile(command, args, options, (error, stdout, stderr) => {
      resolve({ code: error === null ? 0 : codeOf(error.code), stdout, stderr });
    });
    child.stdin?.on('error', () => undefined);
    child.stdin?.end(input ?? '');
  });
}

function codeOf(code: unknown): number {
  return typeof code === 'number' ? code : -1;
}

/** Runs `docker` and returns what it printed. Throws when it failed. */
export async function docker(...args: readonly string[]): Promise<string> {
  return printedBy('docker', args, await run('docker', args));
}

/** What a command printed. Throws, with all of it, when it failed. */
export function printedBy(command: string, args: readonly string[], ran: Ran): string {
  if (ran.code !== 0) {
    const what = `${command} ${args.join(' ')} ended with ${ran.code}`;
    throw new Error(`${what}\n${ran.stdout}\n${ran.stderr}`);
  }
  return ran.stdout;
}

/** `docker compose` where the plugin is there, else docker-compose 1.29. */
export function composeCommand(): readonly [string, ...string[]] {
  const hasPlugin = spawnSync('docker', ['compose', 'version'], { stdio: 'ignore' }).status === 0;
  return hasPlugin ? ['docker', 'compose'] : ['docker-compose'];
}
