/** Logs: one event, one line, on stderr. Never bytes of a terminal, never a key, never a whole request. */
import { destination, type Logger, pino } from 'pino';

export type { Logger };

/** A logger whose lines carry the service's name. */
export function createLogger(service: string, level = 'info'): Logger {
  return pino({ level, base: { service } }, destination({ dest: 2, sync: true }));
}
