/** The data service's process. It is the child of the reaper, and does not outlive it. */
import { constants } from 'node:os';
import { runProcess } from '#chassis/lifecycle.js';
import { createLogger } from '#chassis/logger.js';
import { dieWithParent } from './adapters/posix.js';
import { loadConfig } from './config.js';
import { start } from './start.js';

const logger = createLogger('data', process.env['WHEELHOUSE_LOG_LEVEL']);

runProcess(logger, () => {
  dieWithParent(constants.signals.SIGTERM);
  return start(loadConfig(process.env), logger);
});
