/** What must be true of a room after anybody has misbehaved in it. */
import { expect } from 'vitest';
import { residentBytes } from '../stack/census.js';
import { eventually, within } from '../stack/eventually.js';
import { type Plane, planes, type Stack } from '../stack/stack.js';
import { type AgentRun, raw } from './actors.js';
import type { Room } from './room.js';

/** A program that gives back what it is given: what is shown afterwards can be told from what was before. */
export const echo = raw('echo ready; exec cat');

let marks = 0;

/**
 * The service goes on: a fresh look at a living terminal shows what its agent types now, nothing else,
 * and no plane has logged a bug or said anything that is no line of its log.
 */
export async function stillServes(
  { stack, operator, worker }: Pick<Room, 'stack' | 'operator' | 'worker'>,
  run: AgentRun,
): Promise<void> {
  loggedNoBug(stack);
  const look = await operator.looksAt(worker, { replace: true });
  marks += 1;
  const mark = `mark ${marks}\n`;
  await within('the agent types', 10_000, run.possession.write(Buffer.from(mark)));
  await eventually('the fresh look shows it', () => look.received.text === mark);
  expect(await look.presentation.detach()).toMatchObject({ kind: 'detached' });
  loggedNoBug(stack);
}

/** Every line that a plane logged is one of its own and no bug, and both live. */
export function loggedNoBug(stack: Stack): void {
  for (const plane of planes) {
    const lines = stack.log(plane).split('\n').slice(0, -1);
    expect(lines.filter((line) => !line.startsWith('{') || levelOf(line) >= FATAL)).toEqual([]);
    expect(stack.lives(plane)).toBe(true);
  }
}

const FATAL = 60;

function levelOf(line: string): number {
  return Number((JSON.parse(line) as { readonly level: unknown }).level);
}

/** How much more of the machine a plane holds now than when this was begun, in bytes. */
export function growthOf(stack: Stack, plane: Plane): () => number {
  const before = residentBytes(stack.pid(plane));
  return () => residentBytes(stack.pid(plane)) - before;
}
