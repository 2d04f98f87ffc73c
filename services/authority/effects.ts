/** Performs what a change calls for. Branches on the effect's kind and on nothing else. */
import { assertNever } from '#kernel/bug.js';
import type { Perform } from './authority.js';
import type { Closings } from './closings.js';
import type { Deciding } from './domain/deciding.js';
import type { Graces } from './graces.js';
import type { BindStreams } from './rpc/bind-streams.js';
import type { NodeLinks } from './rpc/node-links.js';

export interface Performers {
  readonly authority: Deciding;
  readonly links: NodeLinks;
  readonly binds: BindStreams;
  readonly graces: Graces;
  readonly closings: Closings;
}

/** A fence for a node without a stream is not lost: its presentations died with the stream, its terminals are in its next inventory. */
export function performing({ authority, links, binds, graces, closings }: Performers): Perform {
  return (effect, epoch) => {
    switch (effect.kind) {
      case 'fence':
        return links.of(effect.node)?.sendFence(effect, epoch);
      case 'tell-reattached':
        return links.of(effect.node)?.sendReattached(effect, epoch);
      case 'tell-reconciled':
        return links.of(effect.node)?.sendReconciled(effect, epoch);
      case 'begin-grace':
        return graces.begin(effect.workerRef, effect.peerRef);
      case 'vacate':
        return authority.insist(effect);
      case 'refuse-binds':
        return binds.refuse(effect.lineage, effect.refusal);
      case 'begin-closing':
        return closings.begin(effect.workerRef, epoch);
      case 'resume-closings':
        return closings.resume(effect.node, epoch);
      default:
        return assertNever(effect);
    }
  };
}
