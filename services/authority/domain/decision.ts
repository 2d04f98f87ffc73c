/** What deciding a command comes to: facts to be made durable, the presence after, what to do then. */
import { granted, type Outcome, refused } from '#kernel/outcome.js';
import type { Effect } from './effect.js';
import type { Presence } from './presence.js';
import type { Surroundings } from './state.js';
import type { WorldEvent } from './world.js';

export interface Decision {
  readonly events: readonly WorldEvent[];
  readonly presence: Presence;
  /** Performed in order after the events are durable. */
  readonly effects: readonly Effect[];
}

/** A decision that leaves the presence as it is. */
export function facts(
  presence: Presence,
  events: readonly WorldEvent[],
  effects: readonly Effect[] = [],
): Outcome<Decision> {
  return granted({ events, presence, effects });
}

/** Refuses JOURNAL_FULL when the disk is nearly full: asked by what begins things, never by what ends them. */
export function admitGrowth(surroundings: Surroundings): Outcome<undefined> {
  const { journalFreeBytes, limits } = surroundings;
  return journalFreeBytes < limits.journalLowWaterBytes
    ? refused('JOURNAL_FULL', { freeBytes: String(journalFreeBytes) })
    : granted(undefined);
}
