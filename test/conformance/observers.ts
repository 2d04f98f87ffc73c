/**
 * The observers, each in its language: what it needs of the machine, how it is built, how it is run.
 *
 * Python, Go and Ruby are built with the distribution's packages and nothing from the network.
 */
import { spawnSync } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { locate, type Tool } from '../stack/machine.js';
import { ownDist } from '../stack/stack-home.js';

const here = dirname(fileURLToPath(import.meta.url));
const checkout = dirname(dirname(here.replace(/\/dist\/test\/conformance$/, '/test/conformance')));
const clients = join(checkout, 'clients');

/** A command, but for its own arguments. */
export interface ObserverCommand {
  readonly file: string;
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
}

export type Language = 'python' | 'go' | 'ruby';

export const languages: readonly Language[] = ['python', 'go', 'ruby'];

/** The library that the others are compared with. */
export const reference: ObserverCommand = {
  file: process.execPath,
  args: [join(ownDist, 'clients', 'typescript', 'examples', 'observe.js')],
  env: {},
};

interface Recipe {
  readonly needs: readonly Tool[];
  /** The script that makes what is run out of proto/, given a folder. */
  readonly script: string;
  command(made: string, sources: string): ObserverCommand;
}

/** Debian's packages belong to Debian's interpreter, whatever else stands first in PATH. */
const python = locate('python3', { PATH: '/usr/bin' }) ?? 'python3';

/** What a machine needs to build and run the observer of a language. */
export function needsOf(language: Language): readonly Tool[] {
  return RECIPES[language].needs;
}

const RECIPES: Readonly<Record<Language, Recipe>> = {
  python: {
    needs: ['python3', 'python3-grpcio', 'protoc', 'grpc_python_plugin'],
    script: 'generate',
    command: (made, sources) => ({
      file: python,
      args: ['-B', join(sources, 'observe')],
      env: { PYTHONPATH: made },
    }),
  },
  go: {
    needs: ['go', 'golang-google-grpc-dev', 'protoc', 'protoc-gen-go', 'protoc-gen-go-grpc'],
    script: 'build',
    command: (made) => ({ file: join(made, 'observe'), args: [], env: {} }),
  },
  ruby: {
    needs: ['ruby', 'ruby-grpc', 'protoc', 'grpc_ruby_plugin'],
    script: 'generate',
    command: (made, sources) => ({
      file: locate('ruby') ?? 'ruby',
      args: [join(sources, 'observe')],
      env: { RUBYLIB: made },
    }),
  },
};

/** Where the observer of a language lies. */
export function sourcesOf(language: Language): string {
  return join(clients, language);
}

/**
 * Makes an observer out of its sources and of the contract, into a folder of its own. Throws with what
 * the build printed. `sources` may be a changed copy, but of Go.
 */
export function buildObserver(
  language: Language,
  folder: string,
  sources = sourcesOf(language),
): ObserverCommand {
  const { script, command } = RECIPES[language];
  const made = join(folder, language);
  mkdirSync(made, { recursive: true });
  const built = spawnSync(join(clients, language, script), [made], { encoding: 'utf8' });
  if (built.status !== 0) {
    throw new Error(`clients/${language}/${script}: ${built.stderr}${built.stdout}`);
  }
  return command(made, sources);
}
