/** A line of the bench's table: what was measured, and beside what. */

export interface Row {
  readonly row: string;
  readonly unit: string;
  readonly wheelhouse: number;
  /** The same work through a peer, in the same run; null where none is named. */
  readonly peer: number | null;
  /** wheelhouse / peer. */
  readonly ratio: number | null;
}

/** What a group of rows is told. */
export interface Terms {
  /** Fewer rounds and less data: shows that it works, says nothing about speed. */
  readonly isSmoke: boolean;
  /** For what is worth knowing while it runs. */
  readonly say: (line: string) => void;
}

export function row(name: string, unit: string, wheelhouse: number, peer?: number): Row {
  const ratio = peer === undefined || peer === 0 ? null : wheelhouse / peer;
  return { row: name, unit, wheelhouse, peer: peer ?? null, ratio };
}

export function median(values: readonly number[]): number {
  return quantile(values, 0.5);
}

/** The value below which a part of all lies; `part` from 0 to 1. NaN of nothing. */
export function quantile(values: readonly number[], part: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))] ?? Number.NaN;
}

export function tableOf(rows: readonly Row[]): string {
  const head = ['row', 'unit', 'wheelhouse', 'peer', 'ratio'];
  const lines = rows.map(({ row: name, unit, wheelhouse, peer, ratio }) => [
    name,
    unit,
    shown(wheelhouse),
    shown(peer),
    shown(ratio),
  ]);
  const widths = head.map((_, at) => Math.max(...[head, ...lines].map((l) => l[at]?.length ?? 0)));
  return [head, ...lines]
    .map((line) =>
      line
        .map((cell, at) => cell.padEnd(widths[at] ?? 0))
        .join('  ')
        .trimEnd(),
    )
    .join('\n');
}

/** Three significant digits, and no exponent. */
function shown(value: number | null): string {
  if (value === null) {
    return '-';
  }
  return Math.abs(value) >= 100 || value === 0 ? value.toFixed(0) : value.toPrecision(3);
}
