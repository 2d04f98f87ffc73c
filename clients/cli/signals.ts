/** The signals that ask a process to end. */
const ENDING_SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;

/** One Ctrl-C may arrive twice: from the terminal, and from npm, which passes it on. */
const SAME_KEY_MS = 1_000;

/** Calls `first` once, and `again` for every later signal that somebody meant as one more. */
export function onEndingSignal(
  first: (signal: NodeJS.Signals) => void,
  again: () => void = () => undefined,
): void {
  let firstAt: number | undefined;
  const onSignal = (signal: NodeJS.Signals): void => {
    const now = performance.now();
    if (firstAt === undefined) {
      firstAt = now;
      first(signal);
    } else if (now - firstAt > SAME_KEY_MS) {
      again();
    }
  };
  for (const signal of ENDING_SIGNALS) {
    process.on(signal, onSignal);
  }
}
