/**
 * The bench: how Wheelhouse does beside its peers, measured in one run. It asserts nothing.
 *
 * usage: npm run bench [-- [--row GROUP]… [--json FILE] [--smoke]]
 */
import { writeFileSync } from 'node:fs';
import { cpus } from 'node:os';
import { parseArgs } from 'node:util';
import { close } from './close.js';
import { command } from './command.js';
import { idle } from './idle.js';
import { out } from './out.js';
import { resolve } from './resolve.js';
import { type Row, type Terms, tableOf } from './row.js';
import { stalled } from './stalled.js';

type Group = (terms: Terms) => Promise<readonly Row[]>;

const groups: Readonly<Record<string, Group>> = { out, resolve, close, idle, stalled, command };

const { values } = parseArgs({
  options: {
    row: { type: 'string', multiple: true },
    json: { type: 'string' },
    smoke: { type: 'boolean', default: false },
  },
});
const chosen = values.row ?? Object.keys(groups);
const unknown = chosen.filter((name) => !Object.hasOwn(groups, name));
if (unknown.length > 0) {
  say(`no such row: ${unknown.join(', ')}; there are ${Object.keys(groups).join(', ')}`);
  process.exit(2);
}

const rows: Row[] = [];
for (const name of chosen) {
  say(`measuring ${name}`);
  try {
    rows.push(...((await groups[name]?.({ isSmoke: values.smoke, say })) ?? []));
  } catch (error) {
    say(`${name} could not be measured: ${error instanceof Error ? error.stack : error}`);
    process.exitCode = 1;
  }
}

const circumstances = {
  date: new Date().toISOString(),
  command:
    `npm run bench ${process.argv.slice(2).length > 0 ? `-- ${process.argv.slice(2).join(' ')}` : ''}`.trim(),
  node: process.version,
  cpu: `${cpus().length} × ${cpus()[0]?.model.trim() ?? 'unknown'}`,
};
for (const [name, value] of Object.entries(circumstances)) {
  process.stdout.write(`${name}: ${value}\n`);
}
process.stdout.write(`\n${tableOf(rows)}\n`);
if (values.json !== undefined) {
  writeFileSync(values.json, `${JSON.stringify(rows, null, 2)}\n`);
}

function say(line: string): void {
  process.stderr.write(`${line}\n`);
}
