/** A terminal's size as people write it: columns first. */
import type { Geometry } from '#gen/wheelhouse/data/v1/data.js';

const CELLS_MAX = 65_535;

/** Parses `COLSxROWS`; undefined for anything else. */
export function parseSize(text: string): Geometry | undefined {
  const [, cols = '', rows = ''] = /^(\d{1,5})[xX](\d{1,5})$/.exec(text) ?? [];
  const geometry = { cols: Number(cols), rows: Number(rows) };
  return isCells(geometry.cols) && isCells(geometry.rows) ? geometry : undefined;
}

export function formatSize({ cols, rows }: Geometry): string {
  return `${cols}x${rows}`;
}

function isCells(count: number): boolean {
  return count >= 1 && count <= CELLS_MAX;
}
