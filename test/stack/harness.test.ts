import { AssertionError } from 'node:assert';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, realpathSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { isAlive, processesOf } from './census.js';
import { runCli, startCli } from './cli-process.js';
import { eventually, within } from './eventually.js';
import { mustFail } from './falsifier.js';
import { needs, needsIn, requiredTools } from './machine.js';
import { MutationMismatch, makeMutant, replaceOnce } from './mutant.js';

test('a mutation that matches nowhere, or twice, is no mutation', () => {
  expect(() => replaceOnce('a b', 'c', '', 'f')).toThrow(MutationMismatch);
  expect(() => replaceOnce('a a', 'a', '', 'f')).toThrow(MutationMismatch);
  expect(replaceOnce('a b', /b/, '$&', 'f')).toBe('a $&');
});

test('a mutant is loaded in place of the product', async () => {
  using mutant = makeMutant({
    file: 'services/kernel/refusal.ts',
    find: "name.toLowerCase().replaceAll('_', '-')",
    replace: "'mutated'",
  });
  const program = `const { kebab } = await import('${mutant.distDir}/services/kernel/refusal.js');
    process.stdout.write(kebab('WORKER_CLOSED'));`;
  const command = { args: ['--input-type=module', '-e', program], env: {}, cwd: tmpdir() };
  expect((await runCli(command)).stdout.toString()).toBe('mutated');
});

test('a falsifier tells a failed assertion from a broken harness and from nothing', async () => {
  await mustFail(() => Promise.reject(new AssertionError({ message: 'seen' })));
  await mustFail(async () => {
    await using _ = { [Symbol.asyncDispose]: () => Promise.reject(new Error('on top')) };
    expect(1).toBe(2);
  });
  await expect(mustFail(() => Promise.reject(new Error('broken')))).rejects.toThrow('broke');
  await expect(mustFail(() => Promise.resolve())).rejects.toThrow('passes without');
});

test('what was waited for and did not come is a failed assertion', async () => {
  await expect(eventually('never', () => false, 50)).rejects.toThrow(AssertionError);
  await expect(within('never', 50, new Promise(() => undefined))).rejects.toThrow(AssertionError);
});

test('a process left in the folder of a stack is found, a zombie is not', async () => {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), 'wh-')));
  const child = spawn('sleep', ['60'], { cwd: folder, env: { PATH: '/usr/bin:/bin' } });
  await once(child, 'spawn');
  await eventually('found', () => processesOf(folder).some(({ pid }) => pid === child.pid));
  child.kill('SIGKILL');
  await once(child, 'exit');
  expect(processesOf(folder)).toEqual([]);
  expect(isAlive(child.pid!)).toBe(false);
  rmSync(folder, { recursive: true });
});

test('a command in a terminal loses nothing of what it prints last', async () => {
  const program = "process.stdout.write('x'.repeat(50000)); process.exitCode = 3;";
  const command = { args: ['-e', program], env: { PATH: '/usr/bin:/bin' }, cwd: tmpdir() };
  const { code, stdout } = await startCli(command, { tty: { cols: 80, rows: 24 } }).ended;
  expect({ code, length: stdout.length }).toEqual({ code: 3, length: 50_000 });
});

test('a tool that must be there is not skipped', () => {
  expect(requiredTools({ WHEELHOUSE_REQUIRE: 'sshd,linux' })).toEqual(['sshd', 'linux']);
  expect(requiredTools({})).toEqual([]);
  expect(() => requiredTools({ WHEELHOUSE_REQUIRE: 'sshb' })).toThrow('sshb');
});

test('a tool that may be absent skips with a reason, one that must be there fails', (context) => {
  needs(context, 'linux');
  const absent = { PATH: '/nowhere' };
  const skippable = {
    skip: (note: string): never => {
      throw new Error(`skipped: ${note}`);
    },
  };
  const need = (env: Record<string, string>) => () => needsIn(env, skippable, 'python3');
  expect(need(absent)).toThrow('skipped: this machine has no python3');
  expect(need({ ...absent, WHEELHOUSE_REQUIRE: 'python3' })).toThrow('must be there');
});
