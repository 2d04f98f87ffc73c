/** A run in the background: a process of its own that keeps the agent present and its terminal held. */
import { UnreachableError } from '#client/call-errors.js';
import { AgentRun, type RunRequest } from './agent-run.js';
import { reportFailure, reportReady, startInBackground, taskMessage } from './background.js';
import { onEndingSignal } from './signals.js';
import type { StateFolder } from './state-folder.js';

/** The hidden command that the process is started with. */
export const DETACHED_RUN = 'detached-run';

/** Returns when the program runs. Throws a `RefusedError` or an `UnreachableError`. */
export async function startDetached(state: StateFolder, request: RunRequest): Promise<void> {
  await startInBackground({
    what: 'the background run',
    args: ['--state', state.dir, DETACHED_RUN],
    message: request,
  });
}

/** The process's own side: runs what it was told to and stays until the program has ended. */
export async function serveDetached(state: StateFolder): Promise<void> {
  const request = (await taskMessage()) as RunRequest;
  try {
    const authority = state.endpoints()?.authority;
    if (authority === undefined) {
      throw new UnreachableError('authority', `no services were started from ${state.dir}`);
    }
    using agentRun = await AgentRun.start(state, authority, request, { take: () => undefined });
    onEndingSignal(
      () => agentRun.possession.end(),
      () => agentRun.possession.abort(),
    );
    reportReady(undefined);
    await agentRun.ended;
  } catch (error) {
    reportFailure(error);
  }
}
