/** Bind: the life of a peer, held open for as long as the caller is there. */
import type { ServerDuplexStream } from '@grpc/grpc-js';
import type { CallerIdentity } from '#chassis/caller.js';
import { callerOf } from '#chassis/grpc-server.js';
import { statusOf, toRefused } from '#chassis/refusal-status.js';
import { ServerStream } from '#chassis/server-stream.js';
import type { BindRequest, BindResponse } from '#gen/wheelhouse/authority/v1/authority.js';
import { bug } from '#kernel/bug.js';
import type { Outcome } from '#kernel/outcome.js';
import { type PeerRef, ref } from '#kernel/refs.js';
import type { Settled } from '../domain/deciding.js';
import { type Asker, bindGone } from '../domain/presence.js';
import { admitRenewal } from '../domain/renewals.js';
import type { BindStream } from './bind-streams.js';
import { sign } from './issue.js';
import { askerOf, type Room } from './room.js';

export function bind(room: Room): (call: ServerDuplexStream<BindRequest, BindResponse>) => void {
  return (call) => {
    const caller = callerOf(call);
    if (caller.kind === 'refused') {
      call.emit('error', statusOf(caller.refusal));
      return;
    }
    new Held(room, new ServerStream(call), caller.value).open();
  };
}

/**
 * One Bind stream.
 *
 * `Bound` is sent after what the bind changed is durable: a seat that waited is the caller's by then.
 */
class Held {
  readonly #room: Room;
  readonly #stream: BindStream;
  readonly #caller: CallerIdentity;
  readonly #asker: Asker;
  /** The peer this stream is part of, once it is. */
  #peerRef: PeerRef | undefined;

  constructor(room: Room, stream: BindStream, caller: CallerIdentity) {
    this.#room = room;
    this.#stream = stream;
    this.#caller = caller;
    this.#asker = askerOf(room, caller);
  }

  open(): void {
    const { authority, binds, names } = this.#room;
    this.#stream.attach({
      onMessage: (request) => this.#receive(request),
      onHalfClose: () => this.#stream.end(),
      onGone: () => this.#leave(),
    });
    binds.endExpired();
    const peerRef = ref<PeerRef>(names.fresh('pr'));
    authority.submit({ kind: 'bind', asker: this.#asker, peerRef }, (outcome) =>
      this.#bound(outcome),
    );
  }

  #bound(outcome: Outcome<Settled>): void {
    const { binds, streams, logger } = this.#room;
    if (outcome.kind === 'refused') {
      logger.info({ rpc: 'Bind', reason: outcome.refusal.reason }, 'refused');
      this.#stream.refuse(outcome.refusal);
      return;
    }
    const peer = outcome.value.state.presence.peers.get(this.#asker.lineage);
    this.#peerRef = peer?.peerRef ?? bug('a bound peer does not live');
    if (this.#stream.isOver) {
      this.#leave();
      return;
    }
    if (!streams.enter(this.#stream)) {
      return;
    }
    binds.enter(this.#asker.lineage, this.#stream);
    const certificateNotAfterMs = BigInt(this.#caller.notAfterMs);
    this.#stream.send({ event: { $case: 'bound', value: { certificateNotAfterMs } } });
  }

  #receive({ operation }: BindRequest): void {
    if (operation === undefined) {
      const facts = { field: 'operation', rule: 'one of this contract' };
      this.#stream.refuse({ reason: 'REQUEST_INVALID', facts });
      return;
    }
    this.#stream.pause();
    void this.#renew(operation.value.certificateRequest);
  }

  /** One at a time: the next request of this stream is read when this one is answered. */
  async #renew(request: Uint8Array): Promise<void> {
    const { authority, settings, clock } = this.#room;
    const { role, name, lineage } = this.#asker;
    const lifeMs =
      role === 'human-control' ? settings.operatorIdentityLifeMs : settings.runCertificateLifeMs;
    // Looked at before signing too, so that a loop costs no signatures.
    const nowMs = clock.now();
    const { renewals } = authority.state.world;
    const admitted = admitRenewal(renewals, lineage, { nowMs, lifeMs });
    if (admitted.kind === 'refused') {
      this.#answerRenewal({ $case: 'refused', value: toRefused(admitted.refusal) });
      return;
    }
    const signed = await sign(this.#room, request, { role, name, lifeMs });
    if (signed.kind === 'refused') {
      this.#answerRenewal({ $case: 'refused', value: toRefused(signed.refusal) });
      return;
    }
    const { issued, message } = signed.value;
    const recorded = await authority.ask({ kind: 'renew', asker: this.#asker, issued });
    this.#answerRenewal(
      recorded.kind === 'granted'
        ? { $case: 'renewed', value: message }
        : { $case: 'refused', value: toRefused(recorded.refusal) },
    );
  }

  #answerRenewal(event: NonNullable<BindResponse['event']>): void {
    this.#stream.send({ event });
    this.#stream.resume();
  }

  /** A drain ends streams, not peers: whoever comes back after it finds its seat. */
  #leave(): void {
    const { authority, binds, streams } = this.#room;
    const peerRef = this.#peerRef;
    binds.leave(this.#asker.lineage, this.#stream);
    streams.leave(this.#stream);
    if (peerRef !== undefined && !streams.isDraining) {
      authority.apply(({ presence, world }) => bindGone(presence, world, peerRef));
    }
  }
}
