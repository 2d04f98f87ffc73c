/**
 * The world broke: something that should have answered did not.
 *
 * At the edge it becomes UNAVAILABLE without a reason. A refusal is never a fault, nor the reverse (law E3).
 */
export class Fault extends Error {
  override readonly name: string = 'Fault';
}
