/**
 * Finds the program and the workspace of a terminal before anything is forked.
 *
 * After the fork a missing command is a program that printed a line and exited with 1, which nobody
 * can tell from one that ran. Found here does not promise that it will run: the file may change, and
 * its interpreter is the kernel's business.
 */
import { realpath, stat } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';

export type CommandPath =
  /** `file` is absolute. */
  | { readonly kind: 'found'; readonly file: string }
  | { readonly kind: 'not-found' }
  /** There is something by that name, but no file that this user may execute. */
  | { readonly kind: 'not-executable' }
  /** The workspace is no directory that this user may enter. */
  | { readonly kind: 'workspace-missing' };

export interface CommandQuestion {
  /** argv[0] as it was given: a path if it holds a slash, else a name to look for. */
  readonly command: string;
  /** Directories parted by colons; an empty one stands for the workspace, as POSIX has it. */
  readonly searchPath: string;
  /** An absolute path. */
  readonly workspace: string;
  /** Who is going to execute it. Supplementary groups do not count: programs get none. */
  readonly as: { readonly uid: number; readonly gid: number };
}

/** Answers as execvp(3) would, for a user this process need not be. */
export async function findCommand(question: CommandQuestion): Promise<CommandPath> {
  const { command, workspace, as } = question;
  if (!(await isEnterable(workspace, as))) {
    return { kind: 'workspace-missing' };
  }
  let answer: CommandPath = { kind: 'not-found' };
  for (const file of candidates(question)) {
    const found = command === '' ? 'not-found' : await judge(file, as);
    if (found === 'found') {
      return { kind: 'found', file };
    }
    answer = found === 'not-executable' ? { kind: found } : answer;
  }
  return answer;
}

type User = CommandQuestion['as'];

function candidates({ command, searchPath, workspace }: CommandQuestion): readonly string[] {
  if (command.includes('/')) {
    return [resolve(workspace, command)];
  }
  return searchPath.split(':').map((directory) => join(resolve(workspace, directory), command));
}

async function judge(
  file: string,
  user: User,
): Promise<Exclude<CommandPath['kind'], 'workspace-missing'>> {
  try {
    const found = await stat(file);
    const isOurs = found.isFile() && mayExecute(found, user) && (await isReachable(file, user));
    return isOurs ? 'found' : 'not-executable';
  } catch (fault) {
    return codeOf(fault) === 'EACCES' ? 'not-executable' : 'not-found';
  }
}

async function isEnterable(directory: string, user: User): Promise<boolean> {
  try {
    const found = await stat(directory);
    return found.isDirectory() && mayExecute(found, user) && (await isReachable(directory, user));
  } catch {
    return false;
  }
}

/** Whether every directory on the way may be searched: as it is written, and where its links lead. */
async function isReachable(path: string, user: User): Promise<boolean> {
  for (const way of new Set([path, await realpath(path)])) {
    for (let above = dirname(way); ; above = dirname(above)) {
      if (!mayExecute(await stat(above), user)) {
        return false;
      }
      if (above === dirname(above)) {
        break;
      }
    }
  }
  return true;
}

interface Permissions {
  readonly mode: number;
  readonly uid: number;
  readonly gid: number;
  isDirectory(): boolean;
}

/** The first class that fits decides, also when a later one would allow more (POSIX file access). */
function mayExecute(file: Permissions, user: User): boolean {
  if (user.uid === 0) {
    return file.isDirectory() || (file.mode & 0o111) !== 0;
  }
  const class_ = file.uid === user.uid ? 0o100 : file.gid === user.gid ? 0o010 : 0o001;
  return (file.mode & class_) !== 0;
}

function codeOf(fault: unknown): unknown {
  return fault instanceof Error && 'code' in fault ? fault.code : undefined;
}
