/** The laws of the house that no linter knows. Each is shown to be able to fail. */
import { appendFileSync, cpSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { methodCallers, operationCallers } from '#gen/channels.js';
import { staleDocuments } from './tidy/current-documents.js';
import {
  declaredChannels,
  fieldsReachedBy,
  forbiddenTo,
  isOurs,
  methodsOf,
  readDescriptors,
} from './tidy/descriptors.js';
import * as documents from './tidy/documents.js';
import * as layout from './tidy/layout.js';
import { readProject, root } from './tidy/project.js';
import * as refusalRules from './tidy/refusals.js';
import { codeOf, importsOf } from './tidy/source-text.js';

const project = readProject();

for (const rule of [layout, refusalRules, documents].flatMap((set) => Object.values(set))) {
  describe(rule.promise, () => {
    test('holds', () => {
      expect(rule.check(project)).toEqual([]);
    });
    test('can fail', () => {
      expect(rule.check(new Map(Object.entries(rule.breach)))).not.toEqual([]);
    });
  });
}

describe('the contract', () => {
  const registry = readDescriptors(root);
  const declared = declaredChannels(registry);

  test('every RPC and every operation of a stream declares who may ask it', () => {
    const all = [
      ...Object.entries(declared.methods),
      ...Object.entries(declared.operations).flatMap(([path, byName]) =>
        Object.entries(byName).map(([name, callers]) => [`${path} ${name}`, callers] as const),
      ),
    ];
    expect(all.filter(([, callers]) => callers.length === 0)).toEqual([]);
    expect(all.length).toBeGreaterThan(20);
  });

  test('the table that is enforced is the one that is declared', () => {
    const ours = Object.entries(methodCallers).filter(([path]) => isOurs(path));
    const enforced = Object.entries(operationCallers)
      .filter(([path]) => isOurs(path))
      .map(([path, { callers }]) => [path, callers]);
    expect(Object.fromEntries(ours)).toEqual(declared.methods);
    expect(Object.fromEntries(enforced)).toEqual(declared.operations);
  });

  test('the contracts that are not ours are these, and open to every identity', () => {
    const everyone = ['HUMAN_CONTROL', 'AGENT', 'CREATOR', 'SERVICE'];
    const notOurs = methodsOf(registry).filter(([path]) => !isOurs(path));
    expect(notOurs.map(([path]) => path).sort()).toEqual([
      '/grpc.health.v1.Health/Check',
      '/grpc.health.v1.Health/List',
      '/grpc.health.v1.Health/Watch',
      '/grpc.reflection.v1.ServerReflection/ServerReflectionInfo',
      '/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo',
    ]);
    for (const [path] of notOurs) {
      expect(methodCallers[path]).toEqual(everyone);
      for (const callers of Object.values(operationCallers[path]?.callers ?? {})) {
        expect(callers).toEqual(everyone);
      }
    }
  });

  test('P1: no peer, attachment, carrier, locus, epoch or descriptor is named to a page', () => {
    const fields = fieldsReachedBy(registry, 'HUMAN_CONTROL');
    expect(fields).toContain('wheelhouse.data.v1.PresentOpen.worker_ref');
    expect(fields).toContain('wheelhouse.data.v1.Opened.out_seq');
    expect(forbiddenTo(fields)).toEqual([]);
  });

  test('P1 can fail: what services tell one another would break it', () => {
    expect(forbiddenTo(fieldsReachedBy(registry, 'SERVICE'))).not.toEqual([]);
  });
});

describe('generated documents', () => {
  test('are what the code says (npm run docs)', () => {
    expect(staleDocuments(join(root, 'docs'))).toEqual([]);
  });

  test('one changed by hand is found out', () => {
    const folder = mkdtempSync(join(tmpdir(), 'wheelhouse-docs-'));
    try {
      cpSync(join(root, 'docs'), folder, { recursive: true });
      appendFileSync(join(folder, 'refusals.md'), 'and one more\n');
      rmSync(join(folder, 'limits.md'));
      expect(staleDocuments(folder)).toEqual(['docs/refusals.md', 'docs/limits.md']);
    } finally {
      rmSync(folder, { recursive: true });
    }
  });
});

describe('reading TypeScript as text', () => {
  test('comments and strings are not code', () => {
    const text = "// Date\nconst a = 'Date'; /* Date */ const b = `Date`;\n";
    expect(codeOf(text)).not.toContain('Date');
    expect(codeOf(text)).toContain('const b =');
  });

  test('imports are found over several lines, types marked', () => {
    const text =
      "import type {\n  A,\n} from './a.js';\nimport './b.js';\nawait import('./c.js');\n";
    expect(importsOf(text)).toEqual([
      { specifier: './a.js', isTypeOnly: true },
      { specifier: './b.js', isTypeOnly: false },
      { specifier: './c.js', isTypeOnly: false },
    ]);
  });
});
