import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { expect, test } from 'vitest';
import { ControlBind } from '#client/control-bind.js';
import { Workers } from '#client/workers.js';
import { isAlive } from './census.js';
import { eventually } from './eventually.js';
import { startProcesses } from './processes.js';

test('each plane can be crashed and comes back where it was', async () => {
  await using stack = await startProcesses();
  const before = { ...stack.endpoints };
  const pids = { authority: stack.pid('authority'), data: stack.pid('data') };
  for (const plane of ['authority', 'data'] as const) {
    await stack.crash(plane);
    expect(isAlive(pids[plane])).toBe(false);
    await stack.restart(plane);
    await stack.joined();
  }
  expect(stack.endpoints).toEqual(before);
  expect(stack.log('authority').match(/"msg":"ready"/g)).toHaveLength(2);
  using control = await ControlBind.open(
    stack.endpoints.authority,
    await stack.identityFor('human-control', 'someone'),
  );
  const worker = { name: 'w', workspace: stack.workspace };
  expect((await new Workers(control.authority).open(worker)).dataEndpoint).toBe(before.data);
});

test('a paused plane is ended all the same', async () => {
  const stack = await startProcesses();
  const pid = stack.pid('data');
  await stack.pause('data');
  await stack[Symbol.asyncDispose]();
  expect(isAlive(pid)).toBe(false);
});

test('a process left behind fails the test that left it, and is ended', async () => {
  const stack = await startProcesses({ leftMs: 500 });
  const child = spawn('sleep', ['600'], { cwd: stack.workspace, stdio: 'ignore' });
  const ended = once(child, 'exit');
  await expect(stack[Symbol.asyncDispose]()).rejects.toThrow(`${child.pid} sleep 600`);
  await ended;
  await eventually('it is gone', () => !isAlive(child.pid!));
});

test('the command finds the stack by its state folder', async () => {
  await using stack = await startProcesses();
  const { code, stdout } = await stack.wheelhouse(['worker', 'open', 'builder']);
  expect({ code, stdout: stdout.toString() }).toEqual({
    code: 0,
    stdout: expect.stringContaining('builder'),
  });
  const listed = await stack.wheelhouse(['worker', 'list'], { tty: { cols: 100, rows: 30 } });
  expect(listed.stdout.toString()).toContain('vacant');
});
