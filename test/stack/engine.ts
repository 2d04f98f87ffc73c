/** The container engine of this machine, wherever it listens, as testcontainers finds it. */
import { getContainerRuntimeClient } from 'testcontainers';

type Client = Awaited<ReturnType<typeof getContainerRuntimeClient>>;

/** The engine's API (dockerode). */
export type Engine = Client['container']['dockerode'];

/** Throws where none answers. */
export async function engine(): Promise<Engine> {
  const { container } = await getContainerRuntimeClient();
  return container.dockerode;
}

/** Why the container tier cannot run here; undefined when it can. */
export async function engineProblem(): Promise<string | undefined> {
  if (process.getuid?.() !== 0) {
    return 'the test is not root, which hands folders to the services’ users and cuts networks';
  }
  return await engine().then(
    async (api) => {
      await api.ping();
      return undefined;
    },
    () => 'no container engine answers',
  );
}
