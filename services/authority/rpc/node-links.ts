/** The resolve streams that serve, one for each data node. */
import type { NodeLink } from './node-link.js';

export class NodeLinks {
  readonly #serving = new Map<string, NodeLink>();

  /** Undefined while the node is not connected. */
  of(node: string): NodeLink | undefined {
    return this.#serving.get(node);
  }

  /** Takes a stream into service; an older one of the same node is superseded. */
  enter(link: NodeLink): void {
    this.#serving.get(link.node)?.supersede();
    this.#serving.set(link.node, link);
  }

  leave(link: NodeLink): void {
    if (this.#serving.get(link.node) === link) {
      this.#serving.delete(link.node);
    }
  }
}
