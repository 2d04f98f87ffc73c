/** The life of a service process: start, say ready, drain on a signal, end on a bug. */
import type { Logger } from './logger.js';

/** What a started service is to its process. */
export interface Running {
  /** What is told to whoever started it, as one JSON line on stdout. */
  readonly ready: Readonly<Record<string, string | number>>;
  /** Ends politely within its own deadline. */
  drain(): Promise<void>;
}

/** BSD's EX_SOFTWARE and EX_CONFIG: a bug, and a start that cannot be. */
const EXIT_BUG = 70;
const EXIT_START_REFUSED = 78;

/**
 * Runs a service until a signal ends it. The only place that ends the process.
 *
 * A second signal while draining ends it at once.
 */
export function runProcess(logger: Logger, start: () => Promise<Running>): void {
  process.on('uncaughtException', (error) => die(logger, error));
  process.on('unhandledRejection', (error) => die(logger, error));
  start().then(
    (running) => {
      process.stdout.write(`${JSON.stringify(running.ready)}\n`);
      logger.info({ port: running.ready['port'] }, 'ready');
      drainOnSignal(logger, running);
    },
    (error: unknown) => {
      logger.fatal({ err: error }, 'start refused');
      process.stdout.write(`${JSON.stringify({ failed: messageOf(error) })}\n`);
      process.exit(EXIT_START_REFUSED);
    },
  );
}

function drainOnSignal(logger: Logger, running: Running): void {
  let isDraining = false;
  const onSignal = (signal: NodeJS.Signals): void => {
    if (isDraining) {
      process.exit(1);
    }
    isDraining = true;
    logger.info({ signal }, 'draining');
    running.drain().then(
      () => process.exit(0),
      (error: unknown) => die(logger, error),
    );
  };
  process.on('SIGTERM', onSignal);
  process.on('SIGINT', onSignal);
  process.on('SIGHUP', onSignal);
}

function die(logger: Logger, error: unknown): never {
  logger.fatal({ err: error }, 'bug');
  process.exit(EXIT_BUG);
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
