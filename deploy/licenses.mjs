/**
 * Lists the licence of every installed dependency and fails when one is not permissive.
 *
 * usage: node deploy/licenses.mjs
 */
import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = dirname(dirname(fileURLToPath(import.meta.url)));

/** Those that ask for nothing but to be named. MPL-2.0 is here for tools that are not shipped. */
const PERMISSIVE = new Set([
  '0BSD',
  'Apache-2.0',
  'BlueOak-1.0.0',
  'BSD-2-Clause',
  'BSD-3-Clause',
  'CC0-1.0',
  'ISC',
  'MIT',
  'Unlicense',
  'WTFPL',
]);
const PERMISSIVE_IF_NOT_SHIPPED = new Set(['MPL-2.0', 'CC-BY-4.0', 'Python-2.0']);

const { packages } = JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8'));
const byLicence = new Map();
const refused = [];
for (const [path, locked] of Object.entries(packages)) {
  const manifest = join(root, path, 'package.json');
  if (path === '' || !existsSync(manifest)) {
    continue;
  }
  const { name, version, license, licenses } = JSON.parse(readFileSync(manifest, 'utf8'));
  const expression = expressionOf(license ?? licenses);
  const entry = `${name}@${version}${locked.dev === true ? ' (development)' : ''}`;
  byLicence.set(expression, [...(byLicence.get(expression) ?? []), entry]);
  if (!isPermissive(expression, locked.dev === true)) {
    refused.push(`${entry}: ${expression}`);
  }
}

for (const [expression, entries] of [...byLicence].sort(([a], [b]) => a.localeCompare(b))) {
  process.stdout.write(`${expression} (${entries.length})\n  ${entries.sort().join('\n  ')}\n`);
}
if (refused.length > 0) {
  process.stderr.write(`not permissive:\n  ${refused.join('\n  ')}\n`);
  process.exitCode = 1;
}

/** Older manifests hold an object or a list of them, which means a choice. */
function expressionOf(licence) {
  if (Array.isArray(licence)) {
    return licence.map(expressionOf).join(' OR ');
  }
  return typeof licence === 'object' ? licence.type : (licence ?? 'none stated');
}

/** All parts of an AND, any part of an OR. Nested expressions do not occur and would be refused. */
function isPermissive(expression, isDevelopment) {
  const bare = expression.replace(/^\(|\)$/g, '');
  const allowed = (part) =>
    PERMISSIVE.has(part) || (isDevelopment && PERMISSIVE_IF_NOT_SHIPPED.has(part));
  return bare.includes(' OR ')
    ? bare.split(' OR ').some(allowed)
    : bare.split(' AND ').every(allowed);
}
