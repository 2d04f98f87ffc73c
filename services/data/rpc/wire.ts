/** Domain values as messages, for both streams of this plane. */

import { toCloseReason } from '#chassis/refusal-status.js';
import type {
  Closed,
  End,
  Exit as ExitMessage,
  GeometryChanged,
  Geometry as GeometryMessage,
} from '#gen/wheelhouse/data/v1/data.js';
import { andThen, granted, type Outcome, refused } from '#kernel/outcome.js';
import { generation, ref, type WorkerRef } from '#kernel/refs.js';
import type { CloseReasonName } from '#kernel/refusal.js';
import type { Caller, Designation } from '../domain/link.js';
import type { Handover, OutputReader } from '../domain/output-reader.js';
import type { Exit, Geometry, Terminal } from '../domain/terminal.js';

/** The kernel keeps 16 bits of each and wraps in silence. */
const CELLS_MAX = 65_535;

/** Refuses GEOMETRY_INVALID. */
export function toGeometry(message: GeometryMessage | undefined): Outcome<Geometry> {
  const { rows, cols } = message ?? { rows: 0, cols: 0 };
  const isValid = rows >= 1 && rows <= CELLS_MAX && cols >= 1 && cols <= CELLS_MAX;
  return isValid
    ? granted({ rows, cols })
    : refused('GEOMETRY_INVALID', {
        rows: String(rows),
        cols: String(cols),
        cellsMax: String(CELLS_MAX),
      });
}

/** A name that nobody gave is refused here: whole batches of questions travel to authority in one message. */
const REF_CHARACTERS_MAX = 256;

/** What a caller designates. Refuses REQUEST_INVALID, and as `introduce` does. */
export function designate(
  open: { readonly workerRef: string; readonly expectedWorkerGeneration: bigint },
  introduce: () => Outcome<Caller>,
): Outcome<Designation> {
  if (open.workerRef.length > REF_CHARACTERS_MAX) {
    const rule = `at most ${REF_CHARACTERS_MAX} characters`;
    return refused('REQUEST_INVALID', { field: 'open.workerRef', rule });
  }
  return andThen(introduce(), (caller) =>
    granted({
      caller,
      workerRef: ref<WorkerRef>(open.workerRef),
      expectedGeneration: generation(open.expectedWorkerGeneration),
    }),
  );
}

/** A window of 0 is the server's own choice; a larger one than allowed is cut to that. */
export function toWindowBytes(asked: number, fallback: number, max: number): number {
  return asked === 0 ? fallback : Math.min(Math.max(asked, 1), max);
}

function fromExit(exit: Exit): ExitMessage {
  return exit.kind === 'code'
    ? { how: { $case: 'code', value: exit.code } }
    : { how: { $case: 'signal', value: exit.signal } };
}

/** What is handed over and is no frame, as both streams tell it. */
export function toldMessage(handover: Exclude<Handover, { readonly kind: 'frame' }>): {
  event: { $case: 'geometry'; value: GeometryChanged } | { $case: 'end'; value: End };
} {
  if (handover.kind === 'end') {
    const value = { outSeq: handover.outSeq, exit: fromExit(handover.exit) };
    return { event: { $case: 'end', value } };
  }
  const { outSeq, geometry } = handover.mark;
  return { event: { $case: 'geometry', value: { outSeq, geometry: { ...geometry } } } };
}

/** The positions at which a stream stands when it closes (law B2). */
export function closedMessage(
  reason: CloseReasonName,
  reader: OutputReader,
  terminal: Terminal,
): Closed {
  const { end } = terminal;
  return {
    reason: toCloseReason(reason),
    ackedSeq: reader.window.ackedSeq,
    sentSeq: reader.window.sentSeq,
    producedSeq: terminal.producedSeq,
    exit: end === undefined ? undefined : fromExit(end),
  };
}
