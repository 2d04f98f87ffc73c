/** What an agent asked to run, checked and found on this machine before anything is forked. */
import type { PossessOpen } from '#gen/wheelhouse/data/v1/data.js';
import { granted, type Outcome, refused } from '#kernel/outcome.js';
import type { DataConfig } from '../config.js';
import type { Geometry, TerminalSpec } from '../domain/terminal.js';
import { childEnvironment } from './child-environment.js';
import { findCommand } from './command-path.js';

/**
 * Refuses REQUEST_INVALID for what no program could be given, SPAWN_FAILED (facts `cause`, `file`)
 * for what is not there: `not-found`, `not-executable` or `workspace-missing`.
 */
export async function toProgram(
  open: PossessOpen,
  workspace: string,
  geometry: Geometry,
  config: DataConfig,
): Promise<Outcome<TerminalSpec>> {
  const fault = faultIn(open, config);
  if (fault !== undefined) {
    return refused('REQUEST_INVALID', fault);
  }
  const [command = '', ...args] = open.argv;
  const isOwnUser = config.terminalUid === -1;
  const env = childEnvironment({
    uid: isOwnUser ? undefined : config.terminalUid,
    extra: open.env,
  });
  const as = isOwnUser ? ownUser() : { uid: config.terminalUid, gid: config.terminalGid };
  const searchPath = env['PATH'] ?? '';
  const found = await findCommand({ command, searchPath, workspace, as });
  if (found.kind !== 'found') {
    const file = found.kind === 'workspace-missing' ? workspace : command;
    return refused('SPAWN_FAILED', { cause: found.kind, file });
  }
  return granted({ file: found.file, args, env, cwd: workspace, geometry });
}

function faultIn(open: PossessOpen, config: DataConfig): Record<string, string> | undefined {
  const entries = Object.entries(open.env);
  const words = [...open.argv, ...entries.flat()];
  if (open.argv.length === 0) {
    return { field: 'open.argv', rule: 'at least the command' };
  }
  if (words.some((word) => word.includes('\0'))) {
    return { field: 'open.argv', rule: 'no NUL in the command, its arguments or environment' };
  }
  if (entries.some(([name]) => name === '' || name.includes('='))) {
    return { field: 'open.env', rule: 'names without = and not empty' };
  }
  const bytes = words.reduce((sum, word) => sum + Buffer.byteLength(word) + 1, 0);
  return bytes > config.argvBytesMax
    ? { field: 'open.argv', rule: `at most ${config.argvBytesMax} bytes with the environment` }
    : undefined;
}

function ownUser(): { readonly uid: number; readonly gid: number } {
  return { uid: process.geteuid?.() ?? 0, gid: process.getegid?.() ?? 0 };
}
