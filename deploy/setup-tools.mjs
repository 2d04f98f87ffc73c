/** What a machine must have before anything can be installed, and how to get what is missing. */
import { accessSync, constants } from 'node:fs';
import { delimiter, join } from 'node:path';

const NODE_MIN = [20, 19];

/** Why this Node will not do; undefined when it will. */
export function nodeProblem(version) {
  const [major, minor] = version.split('.').map(Number);
  const isEnough = major > NODE_MIN[0] || (major === NODE_MIN[0] && minor >= NODE_MIN[1]);
  return isEnough
    ? undefined
    : `Node ${version} is too old: Wheelhouse needs ${NODE_MIN.join('.')} or newer.`;
}

/** One line for each tool that is missing, then how to get them; empty when all are there. */
export function missingTools(path = process.env.PATH ?? '', platform = process.platform) {
  const has = (...names) => names.some((name) => isOnPath(name, path));
  const missing = [
    [has('python3', 'python'), 'python3 is missing: node-gyp runs on it.'],
    [has('make', 'gmake'), 'make is missing: native add-ons are built with it.'],
    [has('c++', 'g++', 'clang++'), 'a C++ compiler is missing: two native add-ons are compiled.'],
  ]
    .filter(([isThere]) => !isThere)
    .map(([, sentence]) => sentence);
  return missing.length === 0 ? [] : [...missing, `Get them with: ${installHint(platform)}`];
}

function installHint(platform) {
  return platform === 'darwin'
    ? 'xcode-select --install'
    : 'apt-get install python3 make g++ (Debian, Ubuntu), dnf install python3 make gcc-c++ (Fedora)';
}

function isOnPath(name, path) {
  return path.split(delimiter).some((folder) => {
    try {
      accessSync(join(folder, name), constants.X_OK);
      return true;
    } catch {
      return false;
    }
  });
}
