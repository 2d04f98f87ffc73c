/** What a data node stands on, as its health tells it (docs/protocol.md, health). */
import type { Part } from '#chassis/health.js';

interface Link {
  /** Whether authority has answered the inventory, and its stream lives. */
  readonly isUp: boolean;
}

interface Terminals {
  /** Those with a process or a descriptor. */
  readonly count: number;
}

/**
 * Without authority everything is refused, so the whole serves nobody. A node that is full still shows
 * and ends what it carries.
 */
export function partsOf(link: Link, terminals: Terminals, terminalsMax: number): readonly Part[] {
  return [
    { name: 'authority-link', isEssential: true, isServing: () => link.isUp },
    { name: 'terminals', isEssential: false, isServing: () => terminals.count < terminalsMax },
  ];
}
