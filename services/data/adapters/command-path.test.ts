import { chmod, mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { type CommandQuestion, findCommand } from './command-path.js';

const owner = { uid: process.getuid?.() ?? 0, gid: process.getgid?.() ?? 0 };
const stranger = { uid: 54321, gid: 54321 };
let workspace: string;

beforeEach(async () => {
  workspace = await mkdtemp(join(tmpdir(), 'command-path-'));
  await chmod(workspace, 0o755);
  await mkdir(join(workspace, 'bin'));
  await mkdir(join(workspace, 'other'));
  await file('bin/tool', 0o755);
  await file('bin/text', 0o644);
  await file('other/text', 0o755);
  await file('local', 0o755);
  await mkdir(join(workspace, 'bin/folder'));
  await file('bin/mine', 0o700);
  await mkdir(join(workspace, 'closed'));
  await file('closed/tool', 0o755);
  await symlink('../closed/tool', join(workspace, 'bin/linked'));
  await chmod(join(workspace, 'closed'), 0o700);
});

afterEach(async () => {
  await rm(workspace, { recursive: true });
});

async function file(name: string, mode: number): Promise<void> {
  await writeFile(join(workspace, name), '#!/bin/sh\n');
  await chmod(join(workspace, name), mode);
}

function ask(command: string, change: Partial<CommandQuestion> = {}) {
  return findCommand({
    command,
    workspace,
    searchPath: `/nowhere:${workspace}/bin:${workspace}/other`,
    as: owner,
    ...change,
  });
}

test.each([
  { command: 'tool', file: 'bin/tool' },
  { command: './bin/tool', file: 'bin/tool' },
  { command: 'bin/tool', file: 'bin/tool' },
  // The first that may be executed, not the first by that name.
  { command: 'text', file: 'other/text' },
  { command: 'linked', file: 'bin/linked' },
])('$command is $file', async ({ command, file }) => {
  expect(await ask(command)).toEqual({ kind: 'found', file: join(workspace, file) });
});

test('a path from the root is itself', async () => {
  const file = join(workspace, 'bin/tool');
  expect(await ask(file)).toEqual({ kind: 'found', file });
});

test('an empty entry of the search path, and a relative one, mean the workspace', async () => {
  const local = { kind: 'found', file: join(workspace, 'local') };
  expect(await ask('local', { searchPath: '/nowhere:' })).toEqual(local);
  const tool = { kind: 'found', file: join(workspace, 'bin/tool') };
  expect(await ask('tool', { searchPath: 'bin' })).toEqual(tool);
});

test.each(['no-such-command', './no-such-command', 'bin/tool/below', ''])(
  '"%s" is not found',
  async (command) => {
    expect(await ask(command)).toEqual({ kind: 'not-found' });
  },
);

test.each(['bin/text', 'folder', './bin'])('%s is not executable', async (command) => {
  expect(await ask(command)).toEqual({ kind: 'not-executable' });
});

test.each([
  { command: 'mine', why: 'it is its owner’s alone' },
  { command: 'closed/tool', why: 'its folder is closed' },
  { command: 'linked', why: 'the link leads into a closed folder' },
])('$command is not executable for another user: $why', async ({ command }) => {
  expect(await ask(command)).toMatchObject({ kind: 'found' });
  expect(await ask(command, { as: stranger })).toEqual({ kind: 'not-executable' });
});

test('root executes what anybody may, and nothing else', async () => {
  expect(await ask('mine', { as: { uid: 0, gid: 0 } })).toMatchObject({ kind: 'found' });
  expect(await ask('bin/text', { as: { uid: 0, gid: 0 } })).toEqual({ kind: 'not-executable' });
});

test.each(['/no/such/folder', 'bin/tool'])('a workspace at %s is missing', async (path) => {
  expect(await ask('tool', { workspace: join(workspace, path) })).toEqual({
    kind: 'workspace-missing',
  });
});

test('a workspace its user may not enter is missing', async () => {
  const closed = { workspace: join(workspace, 'closed') };
  expect(await ask('/bin/sh', closed)).toMatchObject({ kind: 'found' });
  expect(await ask('/bin/sh', { ...closed, as: stranger })).toEqual({ kind: 'workspace-missing' });
});
