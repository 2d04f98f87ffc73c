/** docs/calling-by-hand.md, run as it stands: its commands against a live stack, and what they print. */
import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startProcesses } from '../stack/processes.js';
import type { Stack } from '../stack/stack.js';
import { root } from '../tidy/project.js';

interface Example {
  readonly heading: string;
  readonly commands: string;
  /** What is printed; … stands for anything within a line. Undefined for what only prepares. */
  readonly printed: string | undefined;
}

const EXAMPLE = /^## (.*)$|^```sh\n([\s\S]*?)^```\n(?:\n```text\n([\s\S]*?)^```\n)?/gm;

/** The blocks marked `sh`, in order, each with the block `text` that follows it. */
function examplesOf(document: string): readonly Example[] {
  let heading = '';
  return [...document.matchAll(EXAMPLE)].flatMap(([, title, commands, printed]) => {
    heading = title ?? heading;
    return commands === undefined ? [] : [{ heading, commands, printed }];
  });
}

function matching(printed: string): RegExp {
  const lines = printed.trimEnd().split('…');
  const escaped = lines.map((text) => text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&'));
  return new RegExp(`^${escaped.join('[^\\n]*')}$`);
}

const [before, ...examples] = examplesOf(
  readFileSync(join(root, 'docs', 'calling-by-hand.md'), 'utf8'),
);

/** In the checkout, as a reader would; files that an example makes go where nobody minds. */
function bash(stack: Stack, commands: string): Promise<string> {
  const at = `${before?.commands}${commands}`
    .replaceAll('127.0.0.1:7411', stack.endpoints.authority)
    .replaceAll('127.0.0.1:7412', stack.endpoints.data)
    .replaceAll('bind.json', join(stack.workspace, 'bind.json'));
  const env = { ...process.env, WHEELHOUSE_STATE: stack.stateDir };
  const options = { cwd: root, env, timeout: 50_000 };
  return new Promise((resolve) => {
    execFile('bash', ['-c', `exec 2>&1\n${at}`], options, (_error, stdout) => {
      resolve(stdout.trimEnd());
    });
  });
}

describe('what the document says is printed, is printed', () => {
  let stack: Stack;
  beforeAll(async () => {
    const on = { WHEELHOUSE_REFLECTION: '1' };
    stack = await startProcesses({ settings: { authority: on, data: on } });
  });
  afterAll(() => stack[Symbol.asyncDispose]());

  test('there are as many examples as were counted, and only the first prepares', () => {
    expect(before?.printed).toBeUndefined();
    expect(examples.map(({ printed }) => printed === undefined)).toEqual(Array(7).fill(false));
  });

  test.each(examples)('$heading', { retry: 0 }, async ({ commands, printed = '' }) => {
    expect(await bash(stack, commands)).toMatch(matching(printed));
  });
});
