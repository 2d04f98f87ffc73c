/**
 * What the compose file makes of each plane, read back from the engine.
 *
 * Stacks are made from it, so that scenarios meet the users, capabilities, limits and mounts that are
 * deployed, and not a second description of them.
 */
import { join } from 'node:path';
import type { ContainerCreateOptions, ContainerInspectInfo } from 'dockerode';
import { composeCommand, printedBy, run } from '../deploy/engine-command.js';
import type { Engine } from './engine.js';
import { type Plane, planes } from './stack.js';
import { checkout } from './stack-home.js';

const composeFile = join(checkout, 'deploy', 'docker-compose.yml');

export type Templates = Readonly<Record<Plane, ContainerCreateOptions>>;

/** Has compose make the containers, reads them and has them removed. They are never started. */
export async function readTemplates(api: Engine, project: string, tag: string): Promise<Templates> {
  const [command, ...before] = composeCommand();
  const compose = async (...args: readonly string[]): Promise<string> => {
    const words = [...before, '-p', project, '-f', composeFile, ...args];
    const env = { WHEELHOUSE_IMAGE_TAG: tag };
    return printedBy(command, words, await run(command, words, { env }));
  };
  // Without what they depend on: compose would wait for the job's end, which never starts.
  await compose('up', '--no-start', '--no-build', '--no-deps', ...planes);
  try {
    const entries = planes.map(async (plane) => [plane, await templateOf(api, project, plane)]);
    return Object.fromEntries(await Promise.all(entries)) as Templates;
  } finally {
    await compose('down', '--volumes');
  }
}

async function templateOf(
  api: Engine,
  project: string,
  plane: Plane,
): Promise<ContainerCreateOptions> {
  const label = [`com.docker.compose.project=${project}`, `com.docker.compose.service=${plane}`];
  const [found] = await api.listContainers({ all: true, filters: { label } });
  if (found === undefined) {
    throw new Error(`compose made no container for ${plane}`);
  }
  return optionsOf(await api.getContainer(found.Id).inspect());
}

/** All but names, networks, ports and what is mounted: those are each stack's own. */
function optionsOf({ Config, HostConfig }: ContainerInspectInfo): ContainerCreateOptions {
  const { Image, Cmd, Entrypoint, Env, User, WorkingDir, ExposedPorts } = Config;
  const { Binds: _binds, Mounts: _mounts, PortBindings: _ports, ...limits } = HostConfig;
  return {
    Image,
    Cmd,
    ...(Entrypoint === null || Entrypoint === undefined ? {} : { Entrypoint }),
    Env,
    User,
    WorkingDir,
    ExposedPorts,
    HostConfig: limits,
  };
}
