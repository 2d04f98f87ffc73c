/** The public surface of the client library: everything a program that speaks to Wheelhouse needs, by name. */
export type { KeyedCertificate } from '#chassis/certificates.js';
export { type LoadedIdentity, readIdentity } from '#chassis/identity-files.js';
export {
  type OpenWorkerRequest,
  type Worker,
  WorkerState,
} from '#gen/wheelhouse/authority/v1/authority.js';
export type { Geometry } from '#gen/wheelhouse/data/v1/data.js';
export type { Clock } from '#kernel/clock.js';
export {
  type CloseReasonName,
  type Facts,
  kebab,
  type ReasonName,
  type Refusal,
  sentenceOf,
} from '#kernel/refusal.js';
export { AgentBind } from './agent-bind.js';
export { type BindOptions, isNearItsEnd } from './bind-stream.js';
export { type CallError, RefusedError, UnreachableError } from './call-errors.js';
export {
  type AuthorityConnection,
  type Connection,
  connect,
  type DataConnection,
} from './connect.js';
export { ControlBind } from './control-bind.js';
export type { OutputConsumer } from './output-stream.js';
export { Possession, type PossessionConsumer, type PossessionTerms } from './possession.js';
export {
  type Designation,
  type Opening,
  Presentation,
  type PresentationTerms,
} from './presentation.js';
export type { ClosedEnd, ProgramExit, StreamEnd } from './stream-end.js';
export { type Closing, designationOf, Workers } from './workers.js';
