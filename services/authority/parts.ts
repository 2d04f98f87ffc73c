/** What authority stands on, as its health tells it (docs/protocol.md, health). */
import type { Bus } from '#chassis/bus.js';
import type { Part } from '#chassis/health.js';

interface Journal {
  /** Whether the last write found the disk full. */
  readonly isFull: boolean;
  freeBytes(): number;
}

/**
 * Neither is essential. While nothing can be recorded nothing new begins, but what runs is carried on,
 * and closing is in force at once: a balancer or orchestrator that took authority away for it would take
 * away the one thing that still has to work. A bus that is away costs latency.
 */
export function partsOf(
  { journal, bus }: { readonly journal: Journal; readonly bus: Bus },
  lowWaterBytes: number,
): readonly Part[] {
  return [
    {
      name: 'journal',
      isEssential: false,
      isServing: () => !journal.isFull && hasRoom(journal, lowWaterBytes),
    },
    { name: 'bus', isEssential: false, isServing: () => bus.isConnected },
  ];
}

/** A disk that does not even answer has no room. */
function hasRoom(journal: Journal, lowWaterBytes: number): boolean {
  try {
    return journal.freeBytes() >= lowWaterBytes;
  } catch {
    return false;
  }
}
