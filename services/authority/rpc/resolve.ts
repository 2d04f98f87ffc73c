/** Resolve: the one stream of a data node, from its inventory to its end. */
import type { ServerDuplexStream } from '@grpc/grpc-js';
import { callerOf } from '#chassis/grpc-server.js';
import { statusOf } from '#chassis/refusal-status.js';
import { ServerStream } from '#chassis/server-stream.js';
import type { ResolveRequest } from '#gen/wheelhouse/authority/v1/authority.js';
import { andThen, granted, type Outcome, refused } from '#kernel/outcome.js';
import { nodeGone } from '../domain/presence.js';
import type { OutgoingResponse } from './encoded-answers.js';
import { NodeLink, type NodeLinkParts } from './node-link.js';
import type { Room } from './room.js';
import { dataNodeOf } from './wire.js';

/** Refuses ROLE_NOT_SERVICE to every service but a data node. */
export function resolve(
  room: Room,
): (call: ServerDuplexStream<ResolveRequest, OutgoingResponse>) => void {
  const parts = partsOf(room);
  return (call) => {
    const node = andThen(callerOf(call), (caller): Outcome<string> => {
      const named = dataNodeOf(caller);
      return named === undefined
        ? refused('ROLE_NOT_SERVICE', { callerRole: `${caller.role}/${caller.name}` })
        : granted(named);
    });
    if (node.kind === 'refused') {
      call.emit('error', statusOf(node.refusal));
      return;
    }
    const stream = new ServerStream(call, room.settings.nodeBacklogMax);
    const link = new NodeLink(stream, node.value, parts);
    link.attach();
    room.streams.enter(link);
  };
}

function partsOf(room: Room): NodeLinkParts {
  const { authority, clock, names, verify, settings, links, closings, streams, logger } = room;
  return {
    authority,
    clock,
    names,
    verify,
    limits: settings,
    onServing: (link) => {
      links.enter(link);
      logger.info({ node: link.node }, 'node connected');
    },
    onOver: (link) => streams.leave(link),
    onGone: (link) => {
      if (streams.isDraining) {
        return;
      }
      links.leave(link);
      logger.info({ node: link.node }, 'node gone');
      authority.apply(({ presence }) => ({ state: nodeGone(presence, link.node), effects: [] }));
      closings.nodeGone(link.node);
    },
  };
}
