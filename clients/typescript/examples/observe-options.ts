/** The command line of the example observer, and the state folder it names. */
import { readFileSync } from 'node:fs';
import { homedir, userInfo } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';

export interface ObserveOptions {
  readonly worker: string;
  readonly stateDir: string;
  readonly role: string;
  readonly name: string;
  readonly generation: bigint | undefined;
  readonly holdLimitMs: number | undefined;
  readonly replace: boolean;
  readonly binds: boolean;
  readonly transcript: string | undefined;
}

export const USAGE =
  'usage: observe NAME [--state DIR] [--as ROLE/NAME] [--generation N] [--hold-limit SECONDS] ' +
  '[--replace] [--no-bind] [--transcript FILE|-]';

const HOLD_LIMIT_MAX_S = 30;

/** Undefined for a command line that makes no sense. */
export function parseOptions(args: readonly string[]): ObserveOptions | undefined {
  try {
    const { values, positionals } = parseArgs({
      args: [...args],
      allowPositionals: true,
      options: {
        state: { type: 'string' },
        as: { type: 'string', default: `human-control/${userInfo().username.toLowerCase()}` },
        generation: { type: 'string' },
        'hold-limit': { type: 'string' },
        replace: { type: 'boolean', default: false },
        'no-bind': { type: 'boolean', default: false },
        transcript: { type: 'string' },
      },
    });
    const [worker, ...rest] = positionals;
    const [role = '', name = ''] = values.as.split('/');
    const holdS = values['hold-limit'] === undefined ? undefined : Number(values['hold-limit']);
    const isHold = holdS === undefined || (holdS >= 0 && holdS <= HOLD_LIMIT_MAX_S);
    if (worker === undefined || rest.length > 0 || name === '' || !isHold) {
      return undefined;
    }
    return {
      worker,
      stateDir: values.state ?? defaultStateDir(),
      role,
      name,
      generation: values.generation === undefined ? undefined : BigInt(values.generation),
      holdLimitMs: holdS === undefined ? undefined : Math.round(holdS * 1000),
      replace: values.replace,
      binds: !values['no-bind'],
      transcript: values.transcript,
    };
  } catch {
    return undefined;
  }
}

export interface Endpoints {
  readonly authority: string;
  /** By node. */
  readonly data: Readonly<Record<string, string>>;
}

/** Throws when no services were started from the folder. */
export function readEndpoints(stateDir: string): Endpoints {
  const noted = JSON.parse(readFileSync(join(stateDir, 'endpoints.json'), 'utf8')) as {
    readonly authority: string;
    readonly data: string | Endpoints['data'];
  };
  const { authority, data } = noted;
  return { authority, data: typeof data === 'string' ? { local: data } : data };
}

function defaultStateDir(): string {
  const { WHEELHOUSE_STATE, XDG_STATE_HOME } = process.env;
  const base = XDG_STATE_HOME || join(homedir(), '.local', 'state');
  return WHEELHOUSE_STATE || join(base, 'wheelhouse');
}
