/** `wheelhouse identity list`: whose certificates this state folder holds. */
import { X509Certificate } from 'node:crypto';
import type { Command } from 'commander';
import { identityPaths } from '#chassis/identity-files.js';
import { EXIT_DONE } from '../exit-codes.js';
import { acting, type Ending, type Invocation } from '../invocation.js';
import type { RoleName } from '../state-folder.js';
import { formatTable, visible } from '../table.js';

const EXAMPLES = `
Examples:
  wheelhouse identity list
  wheelhouse --as human-control/ada worker list`;

export function addIdentityList(identity: Command, ending: Ending): void {
  const command = identity
    .command('list')
    .description('list the identities in the state folder')
    .addHelpText('after', EXAMPLES);
  acting(ending, command, list);
}

async function list(invocation: Invocation): Promise<number> {
  const found = invocation.state.identities().flatMap((roleName) => {
    const identity = invocation.state.identity(roleName);
    return identity === undefined ? [] : [describe(invocation, roleName, identity.identity)];
  });
  const rows = found.map(({ identity, expiresAt, file }) => [identity, expiresAt, visible(file)]);
  const text =
    found.length === 0
      ? `no identities in ${invocation.state.dir}; wheelhouse up makes the first`
      : formatTable(['IDENTITY', 'EXPIRES', 'FILE'], rows);
  invocation.result(text, found);
  return EXIT_DONE;
}

function describe(
  { state }: Invocation,
  { role, name }: RoleName,
  { certificatePem }: { readonly certificatePem: string },
): { identity: string; expiresAt: string; file: string } {
  const expiresAt = new Date(new X509Certificate(certificatePem).validTo).toISOString();
  const file = identityPaths(state.dir, role, name).certificate;
  return { identity: `${role}/${name}`, expiresAt, file };
}
