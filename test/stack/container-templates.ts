/**
 * What the compose file makes of each plane, read back from the engine.
 *
 * Stacks are made from it, so that scenarios meet the users, capabilities, limits and mounts that are
 * deployed, and not a second description of them.
 */
import type { ContainerCreateOptions, ContainerInspectInfo } from 'dockerode';
import { compose } from './compose.js';
import type { Engine } from './engine.js';
import { type Plane, planes } from './stack.js';

export type Templates = Readonly<Record<Plane, ContainerCreateOptions>>;

/** Has compose make the containers, reads them and has them removed. They are never started. */
export async function readTemplates(api: Engine, project: string, tag: string): Promise<Templates> {
  const images = { WHEELHOUSE_IMAGE_TAG: tag };
  // Without what they depend on: compose would wait for the job's end, which never starts.
  compose(project, ['up', '--no-start', '--no-build', '--no-deps', ...planes], images);
  try {
    const entries = planes.map(async (plane) => [plane, await templateOf(api, project, plane)]);
    return Object.fromEntries(await Promise.all(entries)) as Templates;
  } finally {
    compose(project, ['down', '--volumes'], images);
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
