/**
 * One terminal with everybody who hangs on it: the agent that possesses it and the operator who may
 * look at it.
 *
 * Single owner of the terminal. It keeps what the slower reader still needs, says when the terminal
 * waits for the operator, and brings the end to both in order: presentation first, possession last.
 */
import type { Clock } from '#kernel/clock.js';
import type { CloseReasonName } from '#kernel/refusal.js';
import type { DataConfig } from './config.js';
import { type Basis, departure, type Grant } from './domain/basis.js';
import { emptyLedger, heldBetween, holdLeftMs } from './domain/hold-ledger.js';
import type { AuthorityLink, Reattachment } from './domain/link.js';
import type { Geometry, Terminal } from './domain/terminal.js';
import { Possessor, type PossessorParts } from './rpc/possessor.js';
import { type Holder, Presenter, type PresenterParts } from './rpc/presenter.js';

export interface CarrierParts {
  readonly basis: Basis;
  readonly link: AuthorityLink;
  readonly clock: Clock;
  readonly config: DataConfig;
  /** The size the program starts with. */
  readonly geometry: Geometry;
  /** Starts the program; its events come to the carrier. */
  readonly spawn: (events: { onProgress: () => void; onWritable: () => void }) => Terminal;
  readonly possessor: PossessorParts;
  /** The terminal is no longer authority's to answer for; nothing new may attach to it. */
  readonly onDetached: (carrier: Carrier) => void;
  /** Presented, held or attached has changed. */
  readonly onStatus: () => void;
  /** The terminal is hung up; the fault says what not even SIGKILL ends. */
  readonly onHungUp: (carrier: Carrier, fault?: unknown) => void;
  /** Nothing of it is left, here or at a transport. */
  readonly onGone: (carrier: Carrier) => void;
}

export class Carrier implements Holder {
  readonly terminal: Terminal;
  readonly #parts: CarrierParts;
  readonly #possessor: Possessor;
  #basis: Basis;
  /** As last read back from the kernel: a look at a terminal that has ended is told it too. */
  #geometry: Geometry;
  #presenter: Presenter | undefined;
  /** Closed presentations whose last frame the transport may still hold. */
  readonly #leaving = new Set<Presenter>();
  #ledger = emptyLedger;
  /** Nothing is handed to anyone before the possession was told that it has begun. */
  #hasBegun = false;
  #isReleased = false;
  #isDetached = false;
  #isHungUp = false;

  /** Starts the program. Throws what `spawn` throws. */
  constructor(parts: CarrierParts) {
    this.#parts = parts;
    this.#basis = parts.basis;
    this.#geometry = parts.geometry;
    this.terminal = parts.spawn({
      onProgress: () => this.#onProgress(),
      onWritable: () => this.#possessor.writable(),
    });
    this.#possessor = new Possessor(parts.possessor, this);
  }

  get basis(): Basis {
    return this.#basis;
  }

  get isPresented(): boolean {
    return this.#presenter !== undefined;
  }

  get isHeld(): boolean {
    return this.#presenter?.isHolding ?? false;
  }

  get heldMs(): number {
    return this.#ledger.totalMs;
  }

  get possessor(): Possessor {
    return this.#possessor;
  }

  /** The program runs and authority knows it: the possession may begin. */
  begin(): void {
    this.#hasBegun = true;
    this.#possessor.begin(this.#geometry);
    this.#onProgress();
  }

  /** Another look begins; the one before, if it is still there, gives way. */
  present(parts: Omit<PresenterParts, 'holder'>): Presenter {
    this.#presenter?.end('REPLACED');
    const presenter = new Presenter({ ...parts, holder: this });
    this.#presenter = presenter;
    presenter.begin(this.#geometry);
    this.#parts.onStatus();
    this.#onProgress();
    return presenter;
  }

  reattached(to: Reattachment): void {
    const { attachmentEpoch, carrierEpoch } = to;
    this.#basis = { ...this.#basis, attachmentEpoch, carrierEpoch };
  }

  authorityLost(): void {
    this.#presenter?.authorityLost();
  }

  endPresentation(reason: CloseReasonName): void {
    this.#presenter?.end(reason);
  }

  /** In force when it resolves: no byte of any presentation of this terminal is released afterwards. */
  async fencePresentations(reason: CloseReasonName): Promise<void> {
    const presenters = [
      ...this.#leaving,
      ...(this.#presenter === undefined ? [] : [this.#presenter]),
    ];
    await Promise.all(presenters.map((presenter) => presenter.fence(reason)));
  }

  /**
   * By authority's order: presentations, then the possession (law P7). The program gets SIGHUP.
   * Authority knows what it ended, so nothing is given back to it.
   */
  endPossession(reason: CloseReasonName): void {
    this.#presenter?.end(reason);
    this.#isReleased = true;
    this.#possessor.end(reason);
  }

  /** By this node's own doing: the same, and authority is told. */
  end(reason: CloseReasonName): void {
    this.#presenter?.end(reason);
    this.#possessor.end(reason);
  }

  /** The agent says that it is done. */
  leave(): void {
    this.#presenter?.end('RELEASED');
    this.#possessor.left();
  }

  /** The agent's stream is gone: a terminal that has not ended ends with it. */
  abandon(): void {
    this.#presenter?.end('RELEASED');
    this.#possessor.gone();
  }

  holdLeftMs(): number {
    const { clock, config } = this.#parts;
    return holdLeftMs(this.#ledger, clock.monotonic(), config.heldMaxMs);
  }

  onHoldBegan(): void {
    this.#parts.onStatus();
  }

  heldBetween(fromMs: number, toMs: number): void {
    this.#ledger = heldBetween(this.#ledger, fromMs, toMs);
    this.#parts.onStatus();
  }

  onPresenterMoved(): void {
    this.#settle();
  }

  onPresenterClosed(presenter: Presenter): void {
    if (this.#presenter === presenter) {
      this.#presenter = undefined;
    }
    this.#leaving.add(presenter);
    this.#parts.onStatus();
    this.#settle();
  }

  onPresenterGone(presenter: Presenter): void {
    this.#leaving.delete(presenter);
    this.#lookWhetherGone();
  }

  onPossessorMoved(): void {
    this.#settle();
  }

  onPossessorClosed(): void {
    this.#detach();
    if (!this.#isReleased) {
      this.#isReleased = true;
      void this.#parts.link.release(this.#basis.attachmentRef);
    }
    void this.terminal.hangUp().then(
      () => this.#hungUp(),
      (fault: unknown) => this.#hungUp(fault),
    );
  }

  /** Whether a grant still leads to this very terminal, and no fence has been heard since. */
  admits(grant: Grant): boolean {
    return !this.#parts.link.isFenced(grant) && departure(this.#basis, grant) === undefined;
  }

  onResized(geometry: Geometry): void {
    this.#geometry = geometry;
    const mark = { outSeq: this.terminal.producedSeq, geometry };
    this.#possessor.resized(mark);
    this.#presenter?.resized(mark);
  }

  #onProgress(): void {
    if (!this.#hasBegun) {
      return;
    }
    // END first: once it is known, what has been produced is final.
    const { end } = this.terminal;
    const { producedSeq } = this.terminal;
    this.#possessor.progressed(producedSeq, end);
    this.#presenter?.progressed(producedSeq, end);
    this.#settle();
  }

  /** Makes room for what no reader needs any more, and looks at what waits for whom. */
  #settle(): void {
    if (this.#possessor.isClosed) {
      return;
    }
    const presenter = this.#presenter;
    const needed = [this.#possessor.neededSeq, presenter?.neededSeq ?? this.terminal.producedSeq];
    this.terminal.release(needed.reduce((least, seq) => (seq < least ? seq : least)));
    presenter?.blocking(this.#waitsFor(presenter));
    if (this.terminal.end !== undefined && this.#presenter === undefined) {
      this.#endInOrder();
    }
  }

  /** Whether the program, running or ended, cannot go on until this reader has taken its output. */
  #waitsFor(presenter: Presenter): boolean {
    if (this.terminal.end !== undefined) {
      return true;
    }
    return this.terminal.isFull && presenter.neededSeq === this.terminal.releasedSeq;
  }

  /** The worker is vacant before its agent hears of the end, so that it can be run again at once. */
  #endInOrder(): void {
    if (this.#isReleased) {
      return;
    }
    this.#isReleased = true;
    this.#detach();
    const { clock, config, link } = this.#parts;
    const deadline = clock.after(config.releaseWaitMs, () => this.#possessor.mayEnd());
    void link.release(this.#basis.attachmentRef).then(() => {
      deadline[Symbol.dispose]();
      this.#possessor.mayEnd();
    });
  }

  #hungUp(fault?: unknown): void {
    this.#isHungUp = true;
    this.#parts.onHungUp(this, fault);
    this.#lookWhetherGone();
  }

  /** A closed look lingers for a while: until then a fence has to find it here. */
  #lookWhetherGone(): void {
    if (this.#isHungUp && this.#leaving.size === 0) {
      this.#parts.onGone(this);
    }
  }

  #detach(): void {
    if (!this.#isDetached) {
      this.#isDetached = true;
      this.#parts.onDetached(this);
    }
  }
}
