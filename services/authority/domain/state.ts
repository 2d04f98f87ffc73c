/** Everything a decision is made from. Immutable: a decision that came to nothing leaves no trace. */
import { emptyPresence, type Presence } from './presence.js';
import { emptyWorld, type World } from './world.js';

export interface State {
  readonly world: World;
  readonly presence: Presence;
}

export const emptyState: State = { world: emptyWorld, presence: emptyPresence };

/** What is true outside at the moment of deciding. */
export interface Surroundings {
  /** Milliseconds since 1970. */
  readonly nowMs: number;
  /** Free space on the journal's disk, bytes. */
  readonly journalFreeBytes: number;
  readonly limits: Limits;
}

/** The limits that decisions depend on; config.ts says why each. */
export interface Limits {
  readonly workersMax: number;
  readonly peersMax: number;
  readonly bindsPerPeerMax: number;
  /** Below this much free space nothing new begins; what ends things still works. */
  readonly journalLowWaterBytes: number;
}
