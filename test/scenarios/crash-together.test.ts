/** Two terminals and the demo at once, from several processes of one operator; another operator waits. */
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import type { CliProcess } from '../stack/cli-process.js';
import { eventually, within } from '../stack/eventually.js';
import { falsifier, type Subject } from '../stack/falsifier.js';
import type { Stack } from '../stack/stack.js';
import { startStack } from '../stack/start-stack.js';
import { expectNoBugs, nothingLeft, watchedExactly } from './aftermath.js';
import { countingSlowly } from './counting.js';
import { product } from './room.js';

async function atOnce(subject: Subject): Promise<void> {
  await using stack = await startStack({ distDir: subject.distDir });
  await stack.identityFor('human-control', 'another');
  const demo = ['node', join(stack.programDir, 'clients', 'cli', 'demo-program.js')];
  const programs = { one: countingSlowly, two: countingSlowly, demo };
  const names = Object.keys(programs);
  await all(
    stack,
    names.map((name) => ['worker', 'open', name, '--workspace', stack.workspace]),
  );
  await all(
    stack,
    Object.entries(programs).map(([name, argv]) => ['run', '-d', name, '--', ...argv]),
  );
  const [one, two, picture] = names.map((name) => starts(stack, 'watch', name)) as [
    CliProcess,
    CliProcess,
    CliProcess,
  ];
  for (const watch of [one, two, picture]) {
    await eventually('something is shown', () => watch.stdout().length > 1_000, 20_000);
  }
  const [lists, another] = await Promise.all([
    all(stack, [
      ['worker', 'list', '--json'],
      ['worker', 'list', '--json'],
    ]),
    stack.wheelhouse(['--as', 'human-control/another', 'worker', 'list'], { cwd: stack.stateDir }),
  ]);
  expect({ code: another.code, stderr: another.stderr }).toEqual({
    code: 3,
    stderr: expect.stringContaining('control-channel-occupied'),
  });
  for (const list of lists) {
    const states = (JSON.parse(list) as { state: string }[]).map(({ state }) => state);
    expect(states).toEqual(['watched', 'watched', 'watched']);
  }

  await all(stack, [['worker', 'close', 'one']]);
  const closed = await within('its look ends', 20_000, one.ended);
  expect({ reason: watchedExactly(closed), code: closed.code }).toEqual({
    reason: 'worker-closed',
    code: 3,
  });
  two.signal('SIGINT');
  const left = await within('its look ends', 20_000, two.ended);
  expect({ reason: watchedExactly(left), code: left.code }).toEqual({
    reason: 'detached',
    code: 0,
  });
  const before = picture.stdout().length;
  await eventually('the demo goes on', () => picture.stdout().length > before + 500);
  expect(picture.stdout().toString()).toContain('Wheelhouse demo');

  await all(stack, [
    ['worker', 'close', 'two'],
    ['worker', 'close', 'demo'],
  ]);
  expect((await within('its look ends', 20_000, picture.ended)).code).toBe(3);
  await nothingLeft(stack);
  await eventually('another operator may now', async () => {
    const args = ['--as', 'human-control/another', 'worker', 'list'];
    return (await stack.wheelhouse(args, { cwd: stack.stateDir })).code === 0;
  });
  expectNoBugs(stack);
}

function starts(stack: Stack, ...args: string[]): CliProcess {
  return stack.start(args, { cwd: stack.stateDir });
}

/** Each in a process of its own, all at the same time. Returns what they print. */
async function all(stack: Stack, commands: readonly string[][]): Promise<readonly string[]> {
  const exits = await Promise.all(
    commands.map((args) => stack.wheelhouse(args, { cwd: stack.stateDir })),
  );
  expect(exits.map(({ code, stderr }) => (code === 0 ? 'done' : stderr))).toEqual(
    commands.map(() => 'done'),
  );
  return exits.map(({ stdout }) => stdout.toString());
}

describe('several terminals at once', () => {
  test('watched, listed and closed from several processes; another operator is refused', () =>
    atOnce(product));
  falsifier(
    'one human-control peer at a time',
    {
      file: 'services/authority/domain/bind.ts',
      find: "asker.role === 'human-control' && controlPeer(presence) !== undefined",
      replace: 'false',
    },
    atOnce,
  );
});
