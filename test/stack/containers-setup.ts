/** Once for all container scenarios: builds the images, reads the templates, makes the network. */
import type { TestProject } from 'vitest/node';
import { builtImages } from '../deploy/images.js';
import { readTemplates, type Templates } from './container-templates.js';
import { type Engine, engine, engineProblem } from './engine.js';

declare module 'vitest' {
  export interface ProvidedContext {
    /** What container stacks are made from; a reason where there can be none. */
    readonly deployment: Deployment | string;
  }
}

export interface Deployment {
  readonly templates: Templates;
  readonly network: string;
  /** Whose these are. */
  readonly run: string;
}

/** On all that the tests make, with the process of the run that made it. */
export const RUN_LABEL = 'org.wheelhouse.test.run';

export async function setup({ provide }: TestProject): Promise<() => Promise<void>> {
  const problem = await engineProblem();
  if (problem !== undefined) {
    provide('deployment', problem);
    return () => Promise.resolve();
  }
  const run = String(process.pid);
  const project = `wh-${run}`;
  const api = await engine();
  const { tag } = await builtImages();
  const templates = await readTemplates(api, project, tag);
  const network = `${project}-scenarios`;
  await api.createNetwork({ Name: network, Labels: { [RUN_LABEL]: run } });
  provide('deployment', { templates, network, run });
  return async () => {
    await removeContainers(api, run);
    await api.getNetwork(network).remove();
  };
}

async function removeContainers(api: Engine, run: string): Promise<void> {
  const left = await api.listContainers({ all: true, filters: { label: [`${RUN_LABEL}=${run}`] } });
  await Promise.all(left.map(({ Id }) => api.getContainer(Id).remove({ force: true, v: true })));
}
