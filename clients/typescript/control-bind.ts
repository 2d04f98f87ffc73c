/** The operator's presence: everything they ask hangs on it and ends with it. */
import type { LoadedIdentity } from '#chassis/identity-files.js';
import { type BindOptions, BindStream } from './bind-stream.js';
import type { CallError } from './call-errors.js';
import { type AuthorityConnection, connect } from './connect.js';

export class ControlBind implements Disposable {
  /** For the calls of this operator. */
  readonly authority: AuthorityConnection;
  readonly #stream: BindStream;

  private constructor(authority: AuthorityConnection, stream: BindStream) {
    this.authority = authority;
    this.#stream = stream;
  }

  /**
   * Returns when the operator is present. Throws a `RefusedError` (`control-channel-occupied` while
   * another operator is) or an `UnreachableError`.
   */
  static async open(
    endpoint: string,
    identity: LoadedIdentity,
    options: BindOptions = {},
  ): Promise<ControlBind> {
    const authority = connect(endpoint, 'authority', identity);
    try {
      return new ControlBind(authority, await BindStream.open(authority, identity, options));
    } catch (error) {
      authority[Symbol.dispose]();
      throw error;
    }
  }

  /** Resolves when the presence ends without `close`. */
  get lost(): Promise<CallError> {
    return this.#stream.lost;
  }

  /** The newest identity: what a new connection should present. */
  get identity(): LoadedIdentity {
    return this.#stream.identity;
  }

  /** Renews the certificate now, and hands it to `onRenewed`. */
  async renew(): Promise<LoadedIdentity> {
    return await this.#stream.renew();
  }

  close(): void {
    this.#stream.close();
    this.authority[Symbol.dispose]();
  }

  [Symbol.dispose](): void {
    this.close();
  }
}
