/** The npm package of the TypeScript client, as somebody who has only the package meets it. */
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { operatorName } from '../../clients/cli/state-folder.js';
import { AgentRun, Operator, raw } from '../scenarios/actors.js';
import { within } from '../stack/eventually.js';
import { startProcesses } from '../stack/processes.js';

const root = dirname(dirname(dirname(fileURLToPath(import.meta.url))));
const modules = join(root, 'node_modules');
const folder = realpathSync(mkdtempSync(join(tmpdir(), 'wh-package-')));
const consumer = join(folder, 'consumer');
const installed = join(consumer, 'node_modules', '@wheelhouse', 'client');

/** Prints what a worker's terminal shows, until its end. */
const CONSUMER = `
import { ControlBind, connect, designationOf, Presentation, readIdentity, type StreamEnd, Workers } from '@wheelhouse/client';
const [state = '', authorityEndpoint = '', operator = '', name = ''] = process.argv.slice(2);
using control = await ControlBind.open(authorityEndpoint, readIdentity(state, 'human-control', operator));
const worker = (await new Workers(control.authority).list()).find((one) => one.name === name);
if (worker === undefined) throw new Error(name);
using data = connect(worker.dataEndpoint, 'data', control.identity);
const look = await Presentation.open(data, { worker: designationOf(worker) }, { take: (bytes) => void process.stdout.write(bytes) });
process.stderr.write('opened\\n');
const end: StreamEnd = await look.ended;
process.stderr.write(end.kind === 'closed' ? end.reason : end.kind);
`;

beforeAll(() => {
  const staged = join(folder, 'staged');
  execFileSync(process.execPath, [join(root, 'clients/typescript/package/stage.mjs'), staged]);
  execFileSync('npm', ['pack', '--offline', '--silent', '--pack-destination', folder, staged]);
  install();
  writeFileSync(join(consumer, 'package.json'), '{ "type": "module" }');
  writeFileSync(join(consumer, 'look.ts'), CONSUMER);
});
afterAll(() => rmSync(folder, { recursive: true }));

/** What npm does with a tarball, its dependencies taken from this checkout. */
function install(): void {
  const [tarball = ''] = readdirSync(folder).filter((name) => name.endsWith('.tgz'));
  mkdirSync(installed, { recursive: true });
  execFileSync('tar', ['-xzf', join(folder, tarball), '-C', installed, '--strip-components=1']);
  for (const name of [...Object.keys(manifest().dependencies), '@types/node']) {
    const link = join(consumer, 'node_modules', name);
    mkdirSync(dirname(link), { recursive: true });
    symlinkSync(join(modules, name), link);
  }
}

function manifest(): { readonly version: string; readonly dependencies: Record<string, string> } {
  return JSON.parse(readFileSync(join(installed, 'package.json'), 'utf8'));
}

function compile(file: string): string {
  const tsc = join(modules, 'typescript', 'bin', 'tsc');
  const options = ['--strict', '--module', 'nodenext', '--target', 'es2022', '--types', 'node'];
  const lib = ['--lib', 'es2023,esnext.disposable'];
  try {
    execFileSync(process.execPath, [tsc, ...options, ...lib, file], { cwd: consumer });
    return '';
  } catch (error) {
    return String((error as { readonly stdout: Buffer }).stdout);
  }
}

test('it has the version of the product, and needs only what it imports, as the product does', () => {
  const product = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as ReturnType<
    typeof manifest
  >;
  const { version, dependencies } = manifest();
  expect(version).toBe(product.version);
  expect(Object.keys(dependencies)).toEqual([
    '@bufbuild/protobuf',
    '@grpc/grpc-js',
    '@peculiar/x509',
    'reflect-metadata',
  ]);
  for (const [name, wanted] of Object.entries(dependencies)) {
    expect(product.dependencies[name]).toBe(wanted);
  }
});

test('a consumer type-checks, its declarations too, and a mistake is found', () => {
  expect(compile('look.ts')).toBe('');
  writeFileSync(
    join(consumer, 'wrong.ts'),
    "import { connect } from '@wheelhouse/client';\nconnect('a:1', 'control', { identity: 1 });\n",
  );
  expect(compile('wrong.ts')).toContain('error TS');
});

test('a consumer looks at a terminal of a live stack', async () => {
  expect(compile('look.ts')).toBe('');
  await using stack = await startProcesses();
  await using operator = await Operator.at(stack, operatorName());
  const worker = await operator.opens('demo');
  const go = join(stack.workspace, 'go');
  const program = raw(`until [ -e ${go} ]; do sleep 0.02; done; printf 'from the package'`);
  const agent = await operator.identityOf('demo');
  await using _run = await AgentRun.starts(stack, agent, worker, program, { isHeadless: true });
  const args = ['look.js', stack.stateDir, stack.endpoints.authority, operatorName(), 'demo'];
  const observed = await started(args, () => writeFileSync(go, ''));
  expect(observed).toEqual({ stdout: 'from the package', stderr: 'opened\nENDED', code: 0 });
});

/** Runs node in the consumer's folder; `onOpened` is called when it has said something on stderr. */
async function started(
  args: readonly string[],
  onOpened: () => void,
): Promise<{ stdout: string; stderr: string; code: number | null }> {
  const child = spawn(process.execPath, args, { cwd: consumer, stdio: ['ignore', 'pipe', 'pipe'] });
  let stdout = '';
  let stderr = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    stdout += text;
  });
  child.stderr.once('data', onOpened);
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    stderr += text;
  });
  await within('the end of the consumer', 30_000, once(child, 'close'));
  return { stdout, stderr, code: child.exitCode };
}
