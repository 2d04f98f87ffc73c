/** Where code may lie and what may lean on what (docs/architecture.md). */
import { posix } from 'node:path';
import { isTest, type Project, type Rule, sources } from './project.js';
import { codeOf, importsOf } from './source-text.js';

const PURE = /^services\/(?:kernel|[a-z-]+\/domain)\//;

/** What a pure core could reach the world with. */
const IMPURE =
  /\b(?:Date|Math\.random|setTimeout|setInterval|setImmediate|queueMicrotask|performance|process|Buffer|crypto|fetch|console|globalThis)\b/g;

export const domainIsPure: Rule = {
  promise: 'domain and kernel reach neither node, npm, a clock nor randomness',
  check: (project) =>
    sources(project)
      .filter(([path]) => PURE.test(path))
      .flatMap(([path, text]) => [
        ...importsOf(text)
          .filter(({ specifier }) => !/^[.#]/.test(specifier))
          .map(({ specifier }) => `${path} imports ${specifier}`),
        ...[...codeOf(text).matchAll(IMPURE)].map(([word]) => `${path} uses ${word}`),
      ]),
  breach: { 'services/data/domain/late.ts': "import 'node:fs';\nconst at = Date.now();\n" },
};

/** kernel and chassis serve every plane; everything else under services/ is a plane. */
function planeOf(path: string): string | undefined {
  const [, folder] = /^services\/([a-z-]+)\//.exec(path) ?? [];
  return folder === 'kernel' || folder === 'chassis' ? undefined : folder;
}

export const planesAreApart: Rule = {
  promise: 'no plane and no client imports a plane',
  check: (project) =>
    [...project]
      .filter(([path]) => path.endsWith('.ts') && !path.startsWith('test/'))
      .flatMap(([path, text]) =>
        importsOf(text)
          .map(({ specifier }) => targetOf(path, specifier))
          .filter((target) => planeOf(target) !== undefined && planeOf(target) !== planeOf(path))
          .map((target) => `${path} imports ${target}`),
      ),
  breach: { 'services/data/rpc/x.ts': "import { y } from '../../authority/domain/y.js';\n" },
};

/** The path a specifier means, from the root of the checkout; a package's name stays as it is. */
function targetOf(from: string, specifier: string): string {
  const folders = { gen: 'proto/gen', kernel: 'services/kernel', chassis: 'services/chassis' };
  const [, alias, rest] = /^#([a-z]+)\/(.*)$/.exec(specifier) ?? [];
  if (alias !== undefined) {
    const folder = alias === 'client' ? 'clients/typescript' : folders[alias as 'gen'];
    return `${folder}/${rest}`;
  }
  return specifier.startsWith('.') ? posix.join(posix.dirname(from), specifier) : specifier;
}

/**
 * A plane's own files outside of its rooms hold its running state and stand beside rpc; start.ts and
 * service.ts assemble it. Biome forbids the cycles that this would leave room for.
 */
type Layer =
  | 'gen'
  | 'kernel'
  | 'chassis'
  | 'domain'
  | 'adapters'
  | 'shell'
  | 'rpc'
  | 'assembly'
  | 'main';

/** What each layer may lean on beside itself. */
const LEANS_ON: Readonly<Record<Layer, readonly Layer[]>> = {
  gen: [],
  kernel: ['gen'],
  chassis: ['gen', 'kernel'],
  domain: ['gen', 'kernel'],
  adapters: ['gen', 'kernel', 'chassis', 'domain'],
  shell: ['gen', 'kernel', 'chassis', 'domain', 'adapters', 'rpc'],
  rpc: ['gen', 'kernel', 'chassis', 'domain', 'adapters', 'shell'],
  assembly: ['gen', 'kernel', 'chassis', 'domain', 'adapters', 'shell', 'rpc'],
  main: ['gen', 'kernel', 'chassis', 'domain', 'adapters', 'shell', 'rpc', 'assembly'],
};

function layerOf(path: string): Layer | undefined {
  if (path.startsWith('proto/gen/')) {
    return 'gen';
  }
  const [, folder, room] = /^services\/([a-z-]+)\/(?:([a-z-]+)\/)?/.exec(path) ?? [];
  if (folder === undefined) {
    return undefined;
  }
  if (folder === 'kernel' || folder === 'chassis') {
    return folder;
  }
  if (room === 'domain' || room === 'rpc' || room === 'adapters') {
    return room;
  }
  const [, file = ''] = /\/([a-z-]+)\.[tj]s$/.exec(path) ?? [];
  if (file === 'main' || file === 'reaper') {
    return 'main';
  }
  return file === 'start' || file === 'service' ? 'assembly' : 'shell';
}

export const arrowsPointInward: Rule = {
  promise:
    'gen ← kernel ← domain ← adapters ← rpc and the plane’s own files ← start ← main, never back',
  check: (project) =>
    sources(project).flatMap(([path, text]) => {
      const layer = layerOf(path);
      return importsOf(text)
        .map(({ specifier }) => targetOf(path, specifier))
        .filter((target) => {
          const other = layerOf(target);
          return (
            layer !== undefined &&
            other !== undefined &&
            other !== layer &&
            !LEANS_ON[layer].includes(other) &&
            !isOwnConfig(target)
          );
        })
        .map((target) => `${path} imports ${target}`);
    }),
  breach: { 'services/data/domain/x.ts': "import { y } from '../adapters/y.js';\n" },
};

/** A plane's settings are numbers that its rpc and adapters are built with. */
function isOwnConfig(target: string): boolean {
  return /^services\/[a-z-]+\/config\.js$/.test(target);
}

/** The stubs of a service drag gRPC along: a pure core takes only their types, and the catalogue. */
export const domainTakesOnlyTypes: Rule = {
  promise: 'domain takes nothing but types from generated code',
  check: (project) =>
    sources(project)
      .filter(([path]) => /^services\/[a-z-]+\/domain\//.test(path))
      .flatMap(([path, text]) =>
        importsOf(text)
          .filter(({ specifier, isTypeOnly }) => specifier.startsWith('#gen/') && !isTypeOnly)
          .map(({ specifier }) => `${path} imports ${specifier}`),
      ),
  breach: { 'services/data/domain/x.ts': "import { D } from '#gen/wheelhouse/data/v1/data.js';\n" },
};

const DRAWERS = /^(utils?|common|helpers?|shared|libs?|core|types|misc)$/;

export const noDrawers: Rule = {
  promise: 'nothing is called utils, common, helpers, shared, lib, core, types or misc',
  check: (project) =>
    [...project.keys()].filter((path) =>
      path.split('/').some((part) => DRAWERS.test(part.replace(/\..*$/, ''))),
    ),
  breach: { 'services/data/adapters/helpers.ts': '' },
};

export const filesSayWhatTheyAre: Rule = {
  promise: 'every source file opens with what it is for',
  check: (project) =>
    sources(project)
      .filter(([, text]) => !/^(?:#!.*\n)?\/[/*]/.test(text))
      .map(([path]) => path),
  breach: { 'services/data/adapters/x.ts': 'export const x = 1;\n' },
};

export const consoleIsForPeople: Rule = {
  promise: 'console is used nowhere: services log, the CLI writes to its streams',
  check: (project) => uses(project, /\bconsole\./, () => false),
  breach: { 'services/data/adapters/x.ts': 'console.log(1);\n' },
};

/** The programs, and what every service's program is made of. */
const MAY_EXIT =
  /(?:^|\/)main\.ts$|^services\/chassis\/lifecycle\.ts$|^services\/data\/reaper\.ts$|-(?:program|probe)\.ts$/;

export const onlyMainsExit: Rule = {
  promise: 'process.exit is called by programs and the lifecycle of services alone',
  check: (project) => uses(project, /\bprocess\.exit\(/, (path) => MAY_EXIT.test(path)),
  breach: { 'services/data/start.ts': 'process.exit(1);\n' },
};

function uses(
  project: Project,
  pattern: RegExp,
  isAllowed: (path: string) => boolean,
): readonly string[] {
  return sources(project)
    .filter(([path, text]) => !isAllowed(path) && pattern.test(codeOf(text)))
    .map(([path]) => path);
}

export const workIsFiled: Rule = {
  promise: 'work left undone names its issue: TODO(#1), and nothing else',
  check: (project) =>
    [...project]
      .filter(([path]) => /\.(ts|mjs|proto)$/.test(path) && !path.startsWith('test/tidy'))
      .filter(([, text]) => /\b(?:FIXME|XXX|HACK)\b|\bTODO(?!\(#\d+\))/.test(text))
      .map(([path]) => path),
  breach: { 'services/data/start.ts': `// ${'TO'}DO later\n` },
};

/** One test a noun, beside it or in test/: none may be left that nobody runs. */
export const testsAreFound: Rule = {
  promise: 'every test file lies where a project of vitest.config.ts looks for it',
  check: (project) =>
    [...project.keys()]
      .filter((path) => /\.(test|spec)\.[a-z]+$/.test(path))
      .filter(
        (path) =>
          !(isTest(path) && /^(services|clients)\/.*\.test\.ts$/.test(path)) &&
          !/^test\/[^/]+\.test\.ts$/.test(path) &&
          !/^test\/(tidy|contracts|scenarios|stack|deploy|conformance)\/.*\.test\.ts$/.test(path),
      ),
  breach: { 'deploy/setup.test.ts': '' },
};
