/** Which close reason a refused resolve gives to a presentation that lives (docs/protocol.md). */
import type { CloseReasonName, ReasonName } from '#kernel/refusal.js';

const BY_REASON: Partial<Readonly<Record<ReasonName, CloseReasonName>>> = {
  WORKER_CLOSED: 'WORKER_CLOSED',
  WORKER_GENERATION_ADVANCED: 'GENERATION_ADVANCED',
  LOCUS_NOT_OCCUPIED: 'AGENT_UNBOUND',
  CARRIER_NOT_ATTACHED: 'RELEASED',
  CARRIER_ATTACHED_ELSEWHERE: 'CARRIER_REPLACED',
  OWNER_UNREACHABLE: 'OWNER_LOST',
  NOT_CARRIED_HERE: 'OWNER_LOST',
  PRESENTATION_ENDED: 'REPLACED',
  AUTHORITY_UNREACHABLE: 'AUTHORITY_UNREACHABLE',
};

/** Whatever else is refused means that the operator may not ask any more. */
export function closeReasonOf(reason: ReasonName): CloseReasonName {
  return BY_REASON[reason] ?? 'CONTROL_UNBOUND';
}
