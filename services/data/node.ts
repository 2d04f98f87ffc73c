/** What every RPC of this node works with. */
import type { Logger } from '#chassis/logger.js';
import type { Clock } from '#kernel/clock.js';
import type { Carriers } from './carriers.js';
import type { DataConfig } from './config.js';
import type { AuthorityLink } from './domain/link.js';
import type { TerminalHost } from './domain/terminal.js';
import type { Openings } from './openings.js';

export interface Node {
  readonly link: AuthorityLink;
  readonly carriers: Carriers;
  readonly openings: Openings;
  readonly host: TerminalHost;
  readonly clock: Clock;
  readonly config: DataConfig;
  readonly logger: Logger;
  /** Aborted when the node goes down: whoever follows is told. */
  readonly draining: AbortSignal;
}
