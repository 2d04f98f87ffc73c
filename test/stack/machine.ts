/**
 * What a test needs of the machine it runs on, beyond Node.
 *
 * WHEELHOUSE_REQUIRE lists what must be there (`sshd,python3`): where it is set, a missing tool fails
 * the test instead of skipping it.
 */
import { spawnSync } from 'node:child_process';
import { accessSync, constants } from 'node:fs';
import { delimiter, join } from 'node:path';

/** A tool, with the folders outside of PATH where distributions put it. */
const PLACES = {
  sshd: ['/usr/sbin', '/usr/local/sbin'],
  ssh: [],
  'nats-server': ['/usr/sbin', '/usr/local/bin'],
  python3: [],
  go: [],
  ruby: [],
  protoc: [],
  grpc_python_plugin: [],
  grpc_ruby_plugin: [],
  'protoc-gen-go': [],
  'protoc-gen-go-grpc': [],
  'python3-grpcio': [],
  'golang-google-grpc-dev': [],
  'ruby-grpc': [],
  libfaketime: [],
  cc: [],
  bash: [],
  tmux: [],
  docker: [],
  linux: [],
  root: [],
} as const satisfies Record<string, readonly string[]>;

export type Tool = keyof typeof PLACES;

/** Libraries of the distribution: a command that succeeds where the package is. */
const LIBRARIES: Readonly<Partial<Record<Tool, readonly [file: string, ...args: string[]]>>> = {
  'python3-grpcio': ['/usr/bin/python3', '-c', 'import grpc, google.protobuf'],
  'golang-google-grpc-dev': ['test', '-d', '/usr/share/gocode/src/google.golang.org/grpc'],
  'ruby-grpc': ['ruby', '-e', 'require "grpc"'],
  libfaketime: ['sh', '-c', 'ls /usr/lib/*/faketime/libfaketimeMT.so.1'],
};

type Environment = Readonly<Record<string, string | undefined>>;

/** As vitest hands it to a test; `skip` throws. */
interface Skippable {
  skip(note: string): never;
}

/** Skips the test with a reason when the machine lacks something; fails it where that must be there. */
export function needs(test: Skippable, ...tools: readonly Tool[]): void {
  needsIn(process.env, test, ...tools);
}

/** The same, in an environment that is given. */
export function needsIn(env: Environment, test: Skippable, ...tools: readonly Tool[]): void {
  const missing = tools.filter((tool) => !isThere(tool, env));
  const [first] = missing;
  if (first === undefined) {
    return;
  }
  const required = missing.filter((tool) => requiredTools(env).includes(tool));
  if (required.length > 0) {
    throw new Error(`${required.join(', ')} must be there (WHEELHOUSE_REQUIRE) and is not`);
  }
  test.skip(`this machine has no ${missing.join(', ')}`);
}

/** For what a whole file prepares: whether to. Its tests say `needs`, which skips or fails. */
export function hasTool(tool: Tool): boolean {
  return isThere(tool, process.env);
}

/** The same for what only a look at it can tell: `problem` is why it will not do. */
export function needsThat(test: Skippable, tool: Tool, problem: string | undefined): void {
  if (problem === undefined) {
    return;
  }
  if (requiredTools(process.env).includes(tool)) {
    throw new Error(`${tool} must be there (WHEELHOUSE_REQUIRE): ${problem}`);
  }
  test.skip(problem);
}

/** The tools that must be there. Throws on a word that is none. */
export function requiredTools(env: Environment): readonly Tool[] {
  const words = (env['WHEELHOUSE_REQUIRE'] ?? '').split(',').filter((word) => word !== '');
  return words.map((word) => {
    if (!Object.hasOwn(PLACES, word)) {
      throw new Error(`WHEELHOUSE_REQUIRE names ${word}, which no test asks for`);
    }
    return word as Tool;
  });
}

/** Where a tool is, or undefined. */
export function locate(tool: Tool, env: Environment = process.env): string | undefined {
  const folders = [...(env['PATH'] ?? '').split(delimiter), ...PLACES[tool]];
  return folders.map((folder) => join(folder, tool)).find(isExecutable);
}

function isThere(tool: Tool, env: Environment): boolean {
  if (tool === 'linux') {
    return process.platform === 'linux';
  }
  if (tool === 'root') {
    return process.getuid?.() === 0;
  }
  if (tool === 'docker') {
    return locate(tool, env) !== undefined && engineAnswers();
  }
  const library = LIBRARIES[tool];
  return library === undefined ? locate(tool, env) !== undefined : succeeds(library);
}

function succeeds([file, ...args]: readonly [file: string, ...args: string[]]): boolean {
  return spawnSync(file, args, { stdio: 'ignore' }).status === 0;
}

let doesEngineAnswer: boolean | undefined;

/** The command alone is nothing: an engine must be running, and this user may talk to it. */
function engineAnswers(): boolean {
  const asked = ['version', '--format', '{{.Server.Version}}'];
  doesEngineAnswer ??=
    spawnSync('docker', asked, { stdio: 'ignore', timeout: 10_000 }).status === 0;
  return doesEngineAnswer;
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
