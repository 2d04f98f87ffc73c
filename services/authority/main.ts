/** The authority process. */
import { runProcess } from '#chassis/lifecycle.js';
import { createLogger } from '#chassis/logger.js';
import { loadSettings } from './config.js';
import { start } from './start.js';

const logger = createLogger('authority', process.env['WHEELHOUSE_LOG_LEVEL'] ?? 'info');
runProcess(logger, async () => start({ settings: loadSettings(process.env), logger }));
