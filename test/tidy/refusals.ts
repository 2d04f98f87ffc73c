/** The catalogue of refusals is one list in four places: proto, code, documents, tests. */
import { catalogue } from '#kernel/refusal.js';
import type { Project, Rule } from './project.js';

const PROTO = 'proto/wheelhouse/refusal/v1/refusal.proto';
const DOCUMENT = 'docs/refusals.md';

/** Names of one enum of refusal.proto, without its prefix. */
function namesOf(project: Project, prefix: 'REASON' | 'CLOSE_REASON'): readonly string[] {
  const text = project.get(PROTO) ?? '';
  const names = [...text.matchAll(new RegExp(`^ +${prefix}_([A-Z_]+) = \\d+;`, 'gm'))];
  return names.map(([, name]) => name ?? '').filter((name) => name !== 'UNSPECIFIED');
}

function kebab(name: string): string {
  return name.toLowerCase().replaceAll('_', '-');
}

export const catalogueIsProto: Rule = {
  promise: 'every refusal of the contract is ruled in kernel/refusal.ts, and no other is',
  check: (project) => {
    const inProto = new Set(namesOf(project, 'REASON'));
    const inCode = new Set(Object.keys(catalogue));
    return [
      ...[...inProto].filter((name) => !inCode.has(name)).map((name) => `${name}: not in code`),
      ...[...inCode].filter((name) => !inProto.has(name)).map((name) => `${name}: not in proto`),
    ];
  },
  breach: { [PROTO]: 'enum Reason {\n  REASON_MADE_UP = 1;\n}\n' },
};

export const namesAreDocumented: Rule = {
  promise: 'every refusal and every close reason has its place in docs/refusals.md',
  check: (project) => {
    const document = project.get(DOCUMENT) ?? '';
    return [...namesOf(project, 'REASON'), ...namesOf(project, 'CLOSE_REASON')]
      .map(kebab)
      .filter((name) => !document.includes(`\`${name}\``));
  },
  breach: { [PROTO]: 'enum Reason {\n  REASON_MADE_UP = 1;\n}\n', [DOCUMENT]: '' },
};

/** The text of every test but the tidy ones, which name things wholesale. */
function testText(project: Project): string {
  return [...project]
    .filter(([path]) => path.endsWith('.test.ts') && !path.startsWith('test/tidy'))
    .map(([, text]) => text)
    .join('\n');
}

export const namesAreTested: Rule = {
  promise: 'every refusal is named by a test',
  check: (project) => {
    const tests = testText(project);
    return namesOf(project, 'REASON').filter((name) => !isNamed(name, tests));
  },
  breach: {
    [PROTO]: 'enum Reason {\n  REASON_WORKER_CLOSED = 1;\n}\n',
    'services/data/x.test.ts': "expect('WORKER_CLOSED_TWICE')",
  },
};

/** As a whole word, so that WORKER_CLOSED is not named by WORKER_CLOSED_TWICE. */
function isNamed(name: string, tests: string): boolean {
  return new RegExp(`(?<![A-Za-z_-])(?:${name}|${kebab(name)})(?![A-Za-z_-])`).test(tests);
}
