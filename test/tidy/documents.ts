/** What documents promise about the code is there. */
import type { Project, Rule } from './project.js';

const PROTOCOL = 'docs/protocol.md';

/** RPC names by plane, read off the contract. */
function rpcsOf(project: Project): ReadonlyMap<string, readonly string[]> {
  const rpcs = new Map<string, readonly string[]>();
  for (const [path, text] of project) {
    const [, plane] = /^proto\/wheelhouse\/([a-z]+)\/v1\//.exec(path) ?? [];
    const names = [...text.matchAll(/^ {2}rpc ([A-Za-z]+)\(/gm)].map(([, name]) => name ?? '');
    if (plane !== undefined && names.length > 0) {
      rpcs.set(plane, names);
    }
  }
  return rpcs;
}

export const planesListTheirRpcs: Rule = {
  promise: 'the README of each plane lists its RPCs',
  check: (project) =>
    [...rpcsOf(project)].flatMap(([plane, names]) => {
      const readme = project.get(`services/${plane}/README.md`) ?? '';
      return names
        .filter((name) => !new RegExp(`\\b${name}\\b`).test(readme))
        .map((name) => `services/${plane}/README.md does not list ${name}`);
    }),
  breach: {
    'proto/wheelhouse/data/v1/data.proto': 'service D {\n  rpc Look(A) returns (B) {\n',
    'services/data/README.md': '',
  },
};

/** `path` in backticks, if it looks like a file of ours, and the `: "…"` that may follow it. */
const NAMED_FILE =
  /`((?:proto|services|clients|deploy|test|docs)\/[\w./-]+\.\w+)`(?:: (?:“|")([^”"]+)(?:”|"))?/g;

export const protocolNamesWhatExists: Rule = {
  promise: 'every file and test that docs/protocol.md names exists',
  check: (project) =>
    [...(project.get(PROTOCOL) ?? '').matchAll(NAMED_FILE)].flatMap(([, path = '', test]) => {
      const text = project.get(path);
      if (text === undefined) {
        return [`there is no ${path}`];
      }
      return test === undefined || text.includes(test) ? [] : [`${path} has no test “${test}”`];
    }),
  breach: { [PROTOCOL]: '`test/scenarios/none.test.ts`: “never written”' },
};

/** P1–P10, B1–B8, E1–E4, one row each. */
const LAWS = [
  ...Array.from({ length: 10 }, (_, at) => `P${at + 1}`),
  ...Array.from({ length: 8 }, (_, at) => `B${at + 1}`),
  ...Array.from({ length: 4 }, (_, at) => `E${at + 1}`),
];

export const lawsAreListed: Rule = {
  promise: 'every law has its row in docs/protocol.md, with enforcement, test and falsifier',
  check: (project) => {
    const rows = (project.get(PROTOCOL) ?? '')
      .split('\n')
      .filter((line) => line.startsWith('|'))
      .map((line) => line.split('|').map((cell) => cell.trim()));
    return LAWS.filter((law) => {
      const cells = rows.find((row) => row[1] === `**${law}**`)?.slice(1, -1);
      return cells?.length !== 5 || cells.includes('');
    });
  },
  breach: { [PROTOCOL]: '| **P1** | designates only |\n' },
};

const FACTS = 'services/authority/domain/world.ts';

export const factsAreDocumented: Rule = {
  promise: 'every kind of fact that Tail tells is listed in docs/protocol.md, and no other',
  check: (project) => {
    const [, union = ''] =
      /export type WorldEvent =([\s\S]*?);\n\n/.exec(project.get(FACTS) ?? '') ?? [];
    const kinds = [...union.matchAll(/kind: '([a-z-]+)'/g)].map(([, kind]) => kind ?? '');
    const [, section = ''] = /## Facts\n([\s\S]*?)\n## /.exec(project.get(PROTOCOL) ?? '') ?? [];
    const listed = [...section.matchAll(/^\| `([a-z-]+)`/gm)].map(([, kind]) => kind ?? '');
    return [
      ...kinds.filter((kind) => !listed.includes(kind)).map((kind) => `${kind} is not listed`),
      ...listed.filter((kind) => !kinds.includes(kind)).map((kind) => `${kind} is no fact`),
    ];
  },
  breach: { [PROTOCOL]: '## Facts\n| `never-was` | x |\n\n## ' },
};

const DOCUMENTS = /^(README|CONTRIBUTING|CHANGELOG)\.md$|^docs\/.*\.md$|^services\/.*\.md$/;

export const linksLead: Rule = {
  promise: 'every relative link in a document leads to a file',
  check: (project) =>
    [...project]
      .filter(([path]) => DOCUMENTS.test(path))
      .flatMap(([path, text]) =>
        [...text.matchAll(/\]\((?!https?:|#)([^)#]+)(?:#[^)]*)?\)/g)]
          .map(([, target = '']) => resolveLink(path, target))
          .filter((target) => !leads(project, target))
          .map((target) => `${path} links to ${target}`),
      ),
  breach: { 'docs/architecture.md': '[x](nowhere.md)' },
};

function resolveLink(from: string, target: string): string {
  const base = from.includes('/') ? `file:///${from}` : `file:///${from}`;
  return new URL(target, base).pathname.slice(1).replace(/\/$/, '');
}

/** To a file that is read here, to one of another kind, or to a folder. */
function leads(project: Project, target: string): boolean {
  const isFolder = [...project.keys()].some((path) => path.startsWith(`${target}/`));
  return project.has(target) || isFolder || target === 'LICENSE';
}
