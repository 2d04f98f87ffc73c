/**
 * The identity job of a deployment. It runs to its end before the services start, as root in a container
 * of its own, and is the only thing that sees the folders of all holders.
 *
 *   identities                        makes what is missing, renews what nears its end
 *   identities issue human-control/N  one more person, into the state folder
 *   identities renew                  new certificates for services and operator
 *   identities new-root               a new root, and new certificates for all but agents
 */

import { integer, load, SettingFault, text } from '#chassis/settings.js';
import { LOCAL_NODE } from '../clients/cli/deployment-identities.js';
import type { Endpoints } from '../clients/cli/state-folder.js';
import { parseRoleName } from '../clients/cli/state-folder.js';
import { type Holders, holdersBelow } from './holders.js';
import { ensureAll, HoldersFault, issue, renew, replaceRoot } from './issuance.js';

const settings = {
  holders: text('WHEELHOUSE_HOLDERS', '/holders', 'Where the folders of all holders are mounted.'),
  operator: text('WHEELHOUSE_OPERATOR', 'operator', 'The first person, as identities have it.'),
  host: text('WHEELHOUSE_HOST', '127.0.0.1', 'Where operators and agents reach the services.'),
  authorityPort: port('WHEELHOUSE_AUTHORITY_PORT', 7411),
  dataPort: port('WHEELHOUSE_DATA_PORT', 7412),
  workspace: text('WHEELHOUSE_WORKSPACE', '/workspace', 'Where workers are when nobody says.'),
} as const;

function port(variable: string, fallback: number): ReturnType<typeof integer> {
  const reason = 'As it is published on the host.';
  return integer(variable, { unit: 'port', fallback, min: 1, max: 65_535, reason });
}

/** sysexits: usage, and a deployment that a person must look at. */
const EXIT_USAGE = 64;
const EXIT_CONFIG = 78;

process.exitCode = await main(process.argv.slice(2));

async function main(words: readonly string[]): Promise<number> {
  try {
    return await act(words);
  } catch (error) {
    if (error instanceof HoldersFault || error instanceof SettingFault) {
      say(error.message);
      return EXIT_CONFIG;
    }
    throw error;
  }
}

async function act([verb = 'ensure', ...operands]: readonly string[]): Promise<number> {
  const { holders: folder, operator, ...rest } = load(settings, process.env);
  if (parseRoleName(`human-control/${operator}`) === undefined) {
    throw new SettingFault('WHEELHOUSE_OPERATOR must be a name: 1 to 63 of a-z 0-9 . _ -');
  }
  const holders = holdersBelow(folder, operator);
  const endpoints: Endpoints = {
    authority: `${rest.host}:${rest.authorityPort}`,
    data: { [LOCAL_NODE]: `${rest.host}:${rest.dataPort}` },
    workspace: rest.workspace,
  };
  if (verb === 'issue') {
    return await issueNamed(holders, operands);
  }
  const verbs = {
    ensure: () => ensureAll(holders, endpoints, Date.now(), say),
    renew: () => renew(holders, Date.now(), say),
    'new-root': () => replaceRoot(holders, endpoints, Date.now(), say),
  };
  if (!Object.hasOwn(verbs, verb) || operands.length > 0) {
    return usage();
  }
  await verbs[verb as keyof typeof verbs]();
  return 0;
}

async function issueNamed(holders: Holders, [name = '']: readonly string[]): Promise<number> {
  const roleName = parseRoleName(name);
  if (roleName === undefined) {
    return usage();
  }
  await issue(holders, roleName, Date.now(), say);
  return 0;
}

function usage(): number {
  say('usage: [issue human-control/NAME | renew | new-root]');
  return EXIT_USAGE;
}

function say(line: string): void {
  process.stderr.write(`identities: ${line}\n`);
}
