/** What the shell offers at <TAB>: commands, options, and the names this state folder knows. */
import tab from '@bomb.sh/tab/commander';
import type { Command } from 'commander';
import { StateFolder, stateDirOf } from './state-folder.js';

/** Commands whose first operand is a worker. */
const WORKER_COMMANDS = ['watch', 'run', 'worker close', 'worker reopen'];

const SHELLS: readonly string[] = ['bash', 'zsh', 'fish', 'powershell'];

/** Stands in for the one function that the script takes from the package bash-completion. */
const COMP_WORDS_FALLBACK = `if ! declare -F _get_comp_words_by_ref >/dev/null; then
    _get_comp_words_by_ref() {
        cur=\${COMP_WORDS[COMP_CWORD]}
        prev=\${COMP_WORDS[COMP_CWORD-1]}
        words=("\${COMP_WORDS[@]}")
        cword=$COMP_CWORD
    }
fi

`;

/** Adds `complete bash|zsh|fish|powershell`, which prints the script to source. */
export function addCompletion(program: Command): void {
  const root = tab(program);
  const complete = program.commands.find((command) => command.name() === 'complete');
  complete
    ?.description('print the completion script of a shell, to be sourced')
    .action((shell: string | undefined, _options, command: Command) => {
      if (isQuestion(process.argv)) {
        root.parse(command.args);
      } else if (shell !== undefined && SHELLS.includes(shell)) {
        const script = printedBy(() => root.setup(program.name(), program.name(), shell));
        process.stdout.write(shell === 'bash' ? bashScript(script) : script);
      } else {
        const shown = shell === undefined ? 'the shell is missing' : `no shell ${shell}`;
        command.error(`error: ${shown}; it is one of ${SHELLS.join(', ')}`);
      }
    });
  for (const name of WORKER_COMMANDS) {
    root.commands.get(name)?.argument('name', (offer) => {
      const state = new StateFolder(stateDirOf(undefined, process.env));
      for (const worker of state.workersNoted()) {
        offer(worker, 'worker');
      }
    });
  }
}

/** `complete -- WORD…` is what the shell asks at every <TAB>. */
function isQuestion(argv: readonly string[]): boolean {
  const dashes = argv.indexOf('--');
  return dashes !== -1 && argv[dashes - 1] === 'complete';
}

/** The scripts' package prints to stdout: there is no other way to have one. */
function printedBy(print: () => void): string {
  const { stdout } = process;
  const { write } = stdout;
  const parts: string[] = [];
  stdout.write = (part: string | Uint8Array) => {
    parts.push(String(part));
    return true;
  };
  try {
    print();
  } finally {
    stdout.write = write;
  }
  return parts.join('');
}

/**
 * The script as it also works without the package bash-completion, when it is sourced twice, and for
 * the command as it was typed: `./wheelhouse` need not be on the PATH.
 */
function bashScript(script: string): string {
  const again = script
    .replace(/^readonly (?=\w+=)/gm, '')
    .replace('requestComp="wheelhouse complete', `requestComp="\${COMP_WORDS[0]} complete`);
  return `${COMP_WORDS_FALLBACK}${again}`;
}
