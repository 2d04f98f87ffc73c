/** What is in the images, and what is not. */
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { beforeAll, describe, expect, test } from 'vitest';
import { hasTool, needs } from '../stack/machine.js';
import { docker, printedBy, run } from './engine-command.js';
import { builtImages, type Images } from './images.js';

let images: Images;
beforeAll(async () => {
  if (hasTool('docker')) {
    images = await builtImages();
  }
});

const TOOLS = 'gcc g++ cc c++ cpp make as ld gold clang tcc go rustc npm npx yarn corepack';

/** Which of the tools an image has, anywhere on a disk of its own. */
async function toolsIn(image: string): Promise<readonly string[]> {
  const names = TOOLS.split(' ').flatMap((tool) => ['-o', '-name', tool]);
  const args = ['run', '--rm', '--network', 'none', '--user', '0', '--entrypoint', 'find', image];
  const found = await docker(
    ...args,
    '/',
    '-xdev',
    '-perm',
    '/111',
    '-not',
    '-type',
    'd',
    '(',
    ...names.slice(1),
    ')',
  );
  return found.split('\n').filter((path) => path !== '');
}

/** A key's first line alone on its line, the seed of a user of the bus, a registry's token. */
const SECRET = [
  '^-----BEGIN [A-Z ]*PRIVATE KEY-----\\r?$',
  '\\bS[UANCOX][A-Z2-7]{56}\\b',
  '_authToken\\s*=\\s*[^\\s$]',
].join('|');
const SECRET_FILES =
  /(?:^|\/)(?:\.npmrc|root\.key|id_[a-z0-9]+|[^/]*\.seed|identities\/.*|\.git\/.*)$/;

/** What looks like a secret in any layer, also in one whose files a later layer removes. */
async function secretsIn(image: string): Promise<readonly string[]> {
  const folder = mkdtempSync(join(tmpdir(), 'wheelhouse-layers-'));
  try {
    const script = `
      docker save "$1" | tar -x -C "$2"
      find "$2" -type f -size +1k | while read -r layer; do
        tar -tf "$layer" 2>/dev/null | sed 's/^/file /'
        tar -xOf "$layer" 2>/dev/null | grep -aoP "$3" | sed 's/^/text /'
      done; exit 0`;
    mkdirSync(folder, { recursive: true });
    const args = ['-c', script, 'layers', image, folder, SECRET];
    const lines = printedBy('bash', args, await run('bash', args)).split('\n');
    expect(lines.filter((line) => line.startsWith('file ')).length).toBeGreaterThan(1000);
    return lines.filter((line) => line.startsWith('text ') || SECRET_FILES.test(line));
  } finally {
    rmSync(folder, { recursive: true });
  }
}

describe.each(['service', 'data'] as const)('the image of %s', (name) => {
  test('has no compiler and no package manager of ours', async (context) => {
    needs(context, 'docker');
    expect(await toolsIn(images[name])).toEqual([]);
  });

  test('has no secret in any layer', async (context) => {
    needs(context, 'docker');
    expect(await secretsIn(images[name])).toEqual([]);
  });

  test('has nothing that takes another user’s rights', async (context) => {
    needs(context, 'docker');
    const args = ['run', '--rm', '--network', 'none', '--user', '0', images[name]];
    expect(await docker(...args, 'find', '/', '-xdev', '-type', 'f', '-perm', '/6000')).toBe('');
  });

  test('holds what runs: no sources, no tests', async (context) => {
    needs(context, 'docker');
    const args = ['run', '--rm', '--network', 'none', images[name]];
    const found = await docker(
      ...args,
      'find',
      '/srv/wheelhouse',
      '-name',
      '*.ts',
      '-o',
      '-name',
      '*.test.js',
    );
    expect(found).toBe('');
    const top = await docker(...args, 'ls', '/srv/wheelhouse');
    expect(top.split('\n').sort()).toEqual(['', 'LICENSE', 'dist', 'node_modules', 'package.json']);
  });

  test('says what it is', async (context) => {
    needs(context, 'docker');
    const [inspected] = JSON.parse(await docker('image', 'inspect', images[name]));
    expect(inspected.Config.Labels).toMatchObject({
      'org.opencontainers.image.licenses': 'Apache-2.0',
      'org.opencontainers.image.title': expect.stringMatching(/^Wheelhouse/),
    });
    expect(inspected.Config.User).toBe(name === 'service' ? '10000:10000' : '0:0');
    expect(await docker('run', '--rm', images[name], 'node', '--version')).toMatch(/^v24\./);
  });
});

describe('the searches find what they are for', () => {
  test('a compiler, in what the images are built with', async (context) => {
    needs(context, 'docker');
    const found = (await toolsIn('node:24-bookworm')).map((path) => path.split('/').at(-1));
    expect(found).toEqual(expect.arrayContaining(['g++', 'make', 'npm']));
  });

  test('a key in a layer whose file is gone', async (context) => {
    needs(context, 'docker');
    const tag = 'wheelhouse/leaky:test';
    const dockerfile = [
      `FROM ${images.service}`,
      'USER 0',
      "RUN printf -- '-----BEGIN PRIVATE KEY-----\\nMIG\\n' > /tmp/forgotten",
      'RUN rm /tmp/forgotten',
    ].join('\n');
    const built = await run('docker', ['build', '--tag', tag, '-'], { input: dockerfile });
    expect(built).toMatchObject({ code: 0 });
    try {
      expect(await secretsIn(tag)).toContain('text -----BEGIN PRIVATE KEY-----');
    } finally {
      await docker('image', 'rm', tag);
    }
  });
});
