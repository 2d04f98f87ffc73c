/** `wheelhouse identity issue`: a new certificate for somebody. */
import { existsSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import type { Command } from 'commander';
import type { KeyedCertificate } from '#chassis/certificates.js';
import { identityPaths, rootPaths } from '#chassis/identity-files.js';
import { RefusedError } from '#client/call-errors.js';
import { mintFromRoot } from '../deployment-identities.js';
import { EXIT_DONE, UsageError } from '../exit-codes.js';
import { acting, type Ending, type Invocation } from '../invocation.js';
import { asOperator } from '../operator.js';
import { parseRoleName, ROLES, type RoleName, StateFolder } from '../state-folder.js';

interface IssueOptions {
  readonly out?: string;
}

const EXAMPLES = `
An agent's identity is issued by authority, for an actor one of your workers names, on a key made
here. Any other needs the root's key, which is in the state folder of the machine that ran
\`wheelhouse up\` first.

Examples:
  wheelhouse identity issue agent/demo --out ./demo-identity
  wheelhouse identity issue human-control/ada
  wheelhouse identity issue service/data.node2 --out ./node2`;

export function addIdentityIssue(identity: Command, ending: Ending): void {
  const command = identity
    .command('issue')
    .description('issue a certificate and its key')
    .argument('<role/name>', 'human-control/…, agent/…, creator/… or service/PLANE[.NODE]')
    .option('--out <dir>', 'write certificate, key and root there; by default the state folder')
    .addHelpText('after', EXAMPLES);
  acting<IssueOptions>(ending, command, issue);
}

async function issue(
  invocation: Invocation,
  [text = '']: readonly string[],
  { out }: IssueOptions,
): Promise<number> {
  const roleName = parseRoleName(text);
  if (roleName === undefined) {
    throw new UsageError(
      `an identity is ROLE/NAME, as human-control/ada, not ${JSON.stringify(text)}; ` +
        `the roles are ${ROLES.join(', ')}, and a name is 1 to 63 of a-z 0-9 . _ -`,
    );
  }
  if (!existsSync(rootPaths(invocation.state.dir).certificate)) {
    throw noRoot(invocation);
  }
  const keyed =
    roleName.role === 'agent'
      ? await issuedByAuthority(invocation, roleName)
      : await issuedHere(invocation, roleName);
  const file = write(invocation, roleName, keyed, out);
  invocation.result(`issued ${text}: ${file}`, { identity: text, file });
  return EXIT_DONE;
}

async function issuedByAuthority(
  invocation: Invocation,
  { name }: RoleName,
): Promise<KeyedCertificate> {
  const rootPem = readFileSync(rootPaths(invocation.state.dir).certificate, 'utf8');
  return await asOperator(invocation, async ({ workers }) => {
    const { identity } = await workers.issueIdentity(name, rootPem);
    return identity;
  });
}

async function issuedHere(invocation: Invocation, roleName: RoleName): Promise<KeyedCertificate> {
  const minted = await mintFromRoot(invocation.state, roleName, Date.now());
  if (minted === undefined) {
    throw noRoot(invocation);
  }
  return minted;
}

function noRoot({ state }: Invocation): RefusedError {
  const found = `no root in ${state.dir}; wheelhouse up makes it`;
  return new RefusedError({ reason: 'CALLER_UNIDENTIFIED', facts: { found } });
}

/** Returns where the certificate is. */
function write(
  { state }: Invocation,
  roleName: RoleName,
  keyed: KeyedCertificate,
  out: string | undefined,
): string {
  if (out === undefined) {
    state.writeIdentity(roleName, keyed);
    return identityPaths(state.dir, roleName.role, roleName.name).certificate;
  }
  const folder = new StateFolder(resolve(out));
  const stem = join(folder.dir, roleName.name);
  folder.write(`${stem}.key`, keyed.keyPem);
  folder.write(`${stem}.crt`, keyed.certificatePem);
  folder.write(
    join(folder.dir, 'root.crt'),
    readFileSync(rootPaths(state.dir).certificate, 'utf8'),
  );
  return `${stem}.crt`;
}
