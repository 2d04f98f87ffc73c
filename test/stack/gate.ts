/**
 * A relay before a service, through which a way can be held up as a cut network holds it: bytes that
 * are under way wait, new connections stay unanswered, and nobody is told.
 */
import { once } from 'node:events';
import { type AddressInfo, createServer, type Server, Socket } from 'node:net';

export class Gate implements AsyncDisposable {
  readonly #server: Server;
  readonly #target: () => string;
  readonly #ways = new Set<Way>();
  readonly #reasons = new Set<string>();

  private constructor(server: Server, target: () => string) {
    this.#server = server;
    this.#target = target;
  }

  /** `target`: where a new connection is to lead, `host:port`; asked each time. */
  static async open(target: () => string): Promise<Gate> {
    const server = createServer({ pauseOnConnect: true });
    const gate = new Gate(server, target);
    server.on('connection', (inner) => gate.#enter(inner));
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    return gate;
  }

  get endpoint(): string {
    return `127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /** Holds everything up until each reason there was to is gone. */
  hold(reason: string): void {
    this.#reasons.add(reason);
    for (const way of this.#ways) {
      way.hold();
    }
  }

  release(reason: string): void {
    if (this.#reasons.delete(reason) && this.#reasons.size === 0) {
      for (const way of this.#ways) {
        way.release();
      }
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const way of this.#ways) {
      way.destroy();
    }
    this.#server.close();
    await once(this.#server, 'close');
  }

  #enter(inner: Socket): void {
    const way = new Way(inner, this.#target, () => this.#ways.delete(way));
    this.#ways.add(way);
    if (this.#reasons.size === 0) {
      way.release();
    }
  }
}

/** One connection and its continuation. What ends or breaks on one side does so on the other, unless held. */
class Way {
  readonly #inner: Socket;
  readonly #target: () => string;
  readonly #onOver: () => void;
  #outer: Socket | undefined;
  #isHeld = true;
  #isGone = false;

  constructor(inner: Socket, target: () => string, onOver: () => void) {
    this.#inner = this.#watched(inner);
    this.#target = target;
    this.#onOver = onOver;
  }

  hold(): void {
    this.#isHeld = true;
    for (const socket of [this.#inner, this.#outer]) {
      socket?.unpipe();
      socket?.pause();
    }
  }

  release(): void {
    this.#isHeld = false;
    if (this.#isGone) {
      this.destroy();
      return;
    }
    this.#outer ??= this.#dial();
    this.#inner.pipe(this.#outer);
    this.#outer.pipe(this.#inner);
  }

  destroy(): void {
    this.#inner.destroy();
    this.#outer?.destroy();
    this.#onOver();
  }

  #dial(): Socket {
    const [host = '', port] = this.#target().split(':');
    return this.#watched(new Socket()).connect(Number(port), host);
  }

  #watched(socket: Socket): Socket {
    const gone = (): void => {
      this.#isGone = true;
      if (!this.#isHeld) {
        this.destroy();
      }
    };
    return socket.setNoDelay(true).on('error', gone).on('close', gone);
  }
}
