/** The command of the checkout as a bare bash sees it. */
import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';

const root = fileURLToPath(new URL('../..', import.meta.url));

function bash(script: string): { readonly status: number | null; readonly output: string } {
  const { status, stdout, stderr } = spawnSync('bash', ['--noprofile', '--norc', '-c', script], {
    cwd: root,
    encoding: 'utf8',
  });
  return { status, output: stdout + stderr };
}

test('completion needs no other package, and may be sourced twice in silence', () => {
  const script = [
    'source <(./wheelhouse complete bash); source <(./wheelhouse complete bash)',
    'compopt() { :; }',
    'COMP_WORDS=(./wheelhouse worker re); COMP_CWORD=2; __wheelhouse_complete',
    'IFS=,; echo "$?:$(printf "<%s>" $COMPREPLY)"',
  ].join('\n');
  expect(bash(script)).toEqual({ status: 0, output: expect.stringMatching(/^0:<reopen\s*>\n$/) });
});

test('node does not take --env-file of ours for its own', () => {
  const { status, output } = bash('./wheelhouse run demo --env-file /no/such -- env');
  expect(status).toBe(125);
  expect(output).toMatch(/^error: option '--env-file <file>' argument '\/no\/such' is invalid/);
});
