/** What every RPC is given: the state, and who acts on it. */
import type { CallerIdentity } from '#chassis/caller.js';
import type { CertificateAuthority } from '#chassis/certificates.js';
import type { Logger } from '#chassis/logger.js';
import type { Clock } from '#kernel/clock.js';
import type { FreshNames } from '#kernel/fresh-names.js';
import type { Outcome } from '#kernel/outcome.js';
import type { WorkerRef } from '#kernel/refs.js';
import type { AuthoritySettings } from '../config.js';
import type { Fencing } from '../domain/closing.js';
import type { Deciding, StoredFact } from '../domain/deciding.js';
import { type Asker, livingPeer, type Peer } from '../domain/presence.js';
import type { BindStreams } from './bind-streams.js';
import type { NodeLinks } from './node-links.js';
import type { OpenStreams } from './open-streams.js';
import { toAsker } from './wire.js';

/** Names the holder of a certificate of this deployment. Refuses CALLER_UNIDENTIFIED. */
export type Verify = (certificate: Uint8Array) => Outcome<CallerIdentity>;

/** The durable facts, to be read. */
interface Facts {
  /** Index of the newest; 0 when there is none. */
  readonly lastIndex: bigint;
  /** Facts after an index, at most so many, in order. */
  rowsAfter(index: bigint, rowsMax: number): readonly StoredFact[];
}

/** The closings that run. */
interface Fencings {
  /** Resolves when a worker's closing is acknowledged, or its attempt's time is up. */
  outcome(workerRef: WorkerRef): Promise<Fencing>;
  nodeGone(node: string): void;
}

export interface Room {
  readonly authority: Deciding;
  readonly journal: Facts;
  readonly clock: Clock;
  readonly names: FreshNames;
  readonly settings: AuthoritySettings;
  readonly certificates: CertificateAuthority;
  readonly verify: Verify;
  readonly links: NodeLinks;
  readonly binds: BindStreams;
  readonly closings: Fencings;
  readonly streams: OpenStreams;
  readonly logger: Logger;
}

/** The caller of a call as the world knows it now. */
export function askerOf({ authority }: Room, caller: CallerIdentity): Asker {
  return toAsker(authority.state, caller);
}

/** The caller's living peer. Refuses CERTIFICATE_EXPIRED, CONTROL_CHANNEL_NOT_BOUND, AGENT_CHANNEL_NOT_BOUND. */
export function boundPeer(room: Room, caller: CallerIdentity): Outcome<Peer> {
  return livingPeer(room.authority.state.presence, askerOf(room, caller), room.clock.now());
}
