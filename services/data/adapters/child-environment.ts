/**
 * The environment a program in a terminal starts with.
 *
 * Built from nothing, never copied: what this service was started with (credentials, addresses, the
 * terminal multiplexer it may sit in) is no business of a program's (case C017).
 */
import { readFileSync } from 'node:fs';
import { userInfo } from 'node:os';

export interface ChildEnvironmentRequest {
  /** The user the program runs as. Undefined: the user of this process. */
  readonly uid?: number | undefined;
  /** The kind of terminal. */
  readonly terminalType?: string | undefined;
  readonly locale?: string | undefined;
  /** Entries to add; they win over what is built here. */
  readonly extra?: Readonly<Record<string, string>> | undefined;
}

/** Reads who the user is, from the machine, each time: accounts change while a service runs. */
export function childEnvironment(request: ChildEnvironmentRequest): Record<string, string> {
  const ownUid = process.getuid?.();
  const uid = request.uid ?? ownUid;
  const account = uid === ownUid ? ownAccount() : accountOf(uid ?? 0);
  const { PATH: servicePath } = process.env;
  return {
    PATH: uid === ownUid ? programPath(servicePath) : defaultPath,
    HOME: account.home,
    USER: account.user,
    SHELL: account.shell,
    LANG: request.locale ?? 'C.UTF-8',
    TERM: request.terminalType ?? 'xterm-256color',
    ...request.extra,
  };
}

/** What Debian gives to a user who has set nothing. */
const defaultPath = '/usr/local/bin:/usr/bin:/bin';

/** The search path without what a package manager put there to start this service. */
export function programPath(servicePath: string | undefined): string {
  const kept = (servicePath ?? '')
    .split(':')
    .filter((entry) => entry !== '' && !isPackageManagers(entry));
  return kept.length > 0 ? kept.join(':') : defaultPath;
}

function isPackageManagers(entry: string): boolean {
  return /\/?node_modules\/\.bin\/*$/.test(entry) || entry.includes('node-gyp-bin');
}

export interface Account {
  readonly user: string;
  readonly home: string;
  readonly shell: string;
}

/**
 * Finds a user in the text of /etc/passwd (passwd(5)). An empty shell is /bin/sh there. Undefined
 * when the file does not know the user.
 */
export function findAccount(passwd: string, uid: number): Account | undefined {
  for (const line of passwd.split('\n')) {
    const [user, , id, , , home, shell] = line.split(':');
    if (user && id === String(uid)) {
      return { user, home: home || '/', shell: shell || '/bin/sh' };
    }
  }
  return undefined;
}

function accountOf(uid: number): Account {
  return findAccount(readFileSync('/etc/passwd', 'utf8'), uid) ?? unnamed(uid);
}

/** Asks the machine, which may know users from elsewhere than the file. */
function ownAccount(): Account {
  try {
    const { username, homedir, shell } = userInfo();
    return { user: username, home: homedir, shell: shell || '/bin/sh' };
  } catch {
    // A container may run as a number that no account has.
    return unnamed(process.getuid?.() ?? 0);
  }
}

function unnamed(uid: number): Account {
  return { user: String(uid), home: '/', shell: '/bin/sh' };
}
