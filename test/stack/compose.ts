/** The compose command of this machine, on the project's own compose file. */
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { checkout } from './stack-home.js';

export const composeFile = join(checkout, 'deploy', 'docker-compose.yml');

/** Building the images on a machine that has none of it takes three minutes. */
const DEADLINE_MS = 10 * 60_000;

/** `docker compose` where the plug-in is there, else the older `docker-compose`. */
function command(): readonly [string, ...string[]] {
  const plugin = spawnSync('docker', ['compose', 'version'], { stdio: 'ignore' });
  return plugin.status === 0 ? ['docker', 'compose'] : ['docker-compose'];
}

/** Runs compose for a project to its end. Throws with what it said when it fails. */
export function compose(
  project: string,
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
): string {
  const [program, ...before] = command();
  const done = spawnSync(program, [...before, '-p', project, '-f', composeFile, ...args], {
    env: { ...process.env, DOCKER_BUILDKIT: '0', COMPOSE_DOCKER_CLI_BUILD: '0', ...env },
    encoding: 'utf8',
    timeout: DEADLINE_MS,
  });
  if (done.status !== 0) {
    throw new Error(`compose ${args.join(' ')} failed:\n${done.stdout}\n${done.stderr}`);
  }
  return done.stdout;
}
