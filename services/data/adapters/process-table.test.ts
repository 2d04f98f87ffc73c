import { expect, test } from 'vitest';
import {
  descendantsOf,
  findProcess,
  type ProcessEntry,
  parseProcessStat,
} from './process-table.js';

/** Fields 3 to 22 of proc(5): state, ppid, pgrp, session, …, num_threads (20), …, starttime (22). */
function stat(name: string, given: { state?: string; threads?: number } = {}): string {
  const middle = '0 -1 4194560 1 2 3 4 5 6 7 8 20 0';
  return `4711 (${name}) ${given.state ?? 'S'} 17 4711 42 ${middle} ${given.threads ?? 1} 0 987654 1000 2000\n`;
}

const sleeping: ProcessEntry = {
  pid: 4711,
  parent: 17,
  session: 42,
  startTime: 987654,
  isRunning: true,
};

test.each([
  { name: 'sleep' },
  { name: 'a b' },
  { name: ') R 1 1 1 (' },
  { name: 'two\nlines' },
  { name: '' },
])('a program may call itself "$name"', ({ name }) => {
  expect(parseProcessStat(stat(name))).toEqual(sleeping);
});

test.each([
  { what: 'a process that waits to be waited for', state: 'Z', threads: 1, isRunning: false },
  { what: 'one whose first thread alone has ended', state: 'Z', threads: 2, isRunning: true },
  { what: 'a dead one', state: 'X', threads: 1, isRunning: false },
  { what: 'a stopped one', state: 'T', threads: 1, isRunning: true },
  { what: 'one the kernel does not let go', state: 'D', threads: 1, isRunning: true },
])('$what: running is $isRunning', ({ isRunning, ...given }) => {
  expect(parseProcessStat(stat('x', given))).toEqual({ ...sleeping, isRunning });
});

test.each(['', '4711', '4711 (sleep', '4711 (sleep) S 17'])('"%s" is no process', (line) => {
  expect(parseProcessStat(line)).toBeUndefined();
});

test('this process finds itself, and nobody under an id that no process has', () => {
  expect(findProcess(process.pid)).toMatchObject({ pid: process.pid, parent: process.ppid });
  expect(findProcess(2 ** 30)).toBeUndefined();
});

test('descendants are children at any depth, whatever order they are listed in', () => {
  const listed = [
    { pid: 9, parent: 8 },
    { pid: 2, parent: 1 },
    { pid: 8, parent: 2 },
    { pid: 3, parent: 0 },
    { pid: 5, parent: 2 },
  ].map((entry) => ({ ...sleeping, ...entry }));
  expect(new Set(descendantsOf(1, listed).map(({ pid }) => pid))).toEqual(new Set([2, 5, 8, 9]));
  expect(descendantsOf(9, listed)).toEqual([]);
});
