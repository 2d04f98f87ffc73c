/** The data service's process. It is the child of the reaper, and does not outlive it. */
import { constants } from 'node:os';
import type { Running } from '#chassis/lifecycle.js';
import { runProcess } from '#chassis/lifecycle.js';
import { createLogger } from '#chassis/logger.js';
import { Descendants } from './adapters/descendants.js';
import { isForked } from './adapters/native-fork.js';
import { dieWithParent } from './adapters/posix.js';
import { loadConfig } from './config.js';
import { start } from './start.js';

const logger = createLogger('data', process.env['WHEELHOUSE_LOG_LEVEL']);

runProcess(logger, async (): Promise<Running> => {
  drainWithReaper();
  const descendants = new Descendants(isForked);
  const running = await start(loadConfig(process.env), logger);
  return {
    ...running,
    // Whether or not there is a reaper left to do it.
    drain: async () => {
      await Promise.all([running.drain(), descendants.end()]);
    },
  };
});

/**
 * Drains when the reaper is gone. The kernel says so once for each thread the reaper had, and a second
 * SIGTERM would cut the drain short: only the first counts.
 */
function drainWithReaper(): void {
  let isAlone = false;
  process.on('SIGUSR2', () => {
    if (!isAlone) {
      isAlone = true;
      process.kill(process.pid, 'SIGTERM');
    }
  });
  dieWithParent(constants.signals.SIGUSR2);
}
