/** Settings and limits of the data service. docs/limits.md is generated from this table. */
import { integer, load, SettingFault, text, type Values } from '#chassis/settings.js';

export const settings = {
  stateDir: text(
    'WHEELHOUSE_STATE',
    '',
    'State folder: identities and the root. No default: it is always given.',
  ),
  listen: text(
    'WHEELHOUSE_LISTEN',
    '127.0.0.1:0',
    'Address to listen on; port 0 takes a free one.',
  ),
  advertise: text(
    'WHEELHOUSE_ADVERTISE',
    '',
    'Where clients reach this node, host:port; empty for the address listened on, which must then be one.',
  ),
  node: text('WHEELHOUSE_NODE', 'local', 'Name of this node; its identity is service/data/<node>.'),
  authority: text(
    'WHEELHOUSE_AUTHORITY',
    '127.0.0.1:7411',
    'Where authority is reached, host:port.',
  ),
  logLevel: text('WHEELHOUSE_LOG_LEVEL', 'info', 'Least important log level written.'),
  reflection: integer('WHEELHOUSE_REFLECTION', {
    unit: '0 or 1',
    fallback: 0,
    min: 0,
    max: 1,
    reason:
      'Server reflection: 1 describes the contract to whoever has an identity, so that tools call without stubs. wheelhouse up turns it on; a deployment has stubs, and exposes nothing that it does not use.',
  }),
  terminalUid: integer('WHEELHOUSE_TERMINAL_UID', {
    unit: 'uid',
    fallback: -1,
    min: -1,
    max: 0x7fffffff,
    reason: 'User that programs run as; -1 for the service’s own, which is for development only.',
  }),
  terminalGid: integer('WHEELHOUSE_TERMINAL_GID', {
    unit: 'gid',
    fallback: -1,
    min: -1,
    max: 0x7fffffff,
    reason: 'Group that programs run as; given together with the user.',
  }),
  terminalsMax: integer('WHEELHOUSE_TERMINALS_MAX', {
    unit: 'terminals',
    fallback: 1000,
    min: 1,
    max: 100_000,
    reason: 'A used terminal keeps its ring resident: 1,000 of them are 0.5 GiB.',
  }),
  ringBytes: integer('WHEELHOUSE_RING_BYTES', {
    unit: 'bytes',
    fallback: 512 * 1024,
    min: 4096,
    max: 64 * 1024 * 1024,
    reason:
      'Output read ahead of the slowest reader, a power of two; with it a used terminal stays under 1 MiB.',
  }),
  windowBytesDefault: integer('WHEELHOUSE_WINDOW_BYTES', {
    unit: 'bytes',
    fallback: 4 * 1024 * 1024,
    min: 4096,
    max: 16 * 1024 * 1024,
    reason:
      'Output sent and not acknowledged: below 4 MiB the window, not the machine, limits a loopback reader (bench row out).',
  }),
  windowBytesMax: integer('WHEELHOUSE_WINDOW_BYTES_MAX', {
    unit: 'bytes',
    fallback: 16 * 1024 * 1024,
    min: 4096,
    max: 256 * 1024 * 1024,
    reason: 'Largest window a reader may ask for: what one lost reader may leave in a transport.',
  }),
  frameBytesMax: integer('WHEELHOUSE_FRAME_BYTES_MAX', {
    unit: 'bytes',
    fallback: 64 * 1024,
    min: 1024,
    max: 256 * 1024,
    reason: 'Largest output frame: larger ones gain nothing and delay a fence.',
  }),
  holdLimitMsDefault: integer('WHEELHOUSE_HOLD_LIMIT_MS', {
    unit: 'ms',
    fallback: 10_000,
    min: 0,
    max: 30_000,
    reason: 'How long one reader may hold a terminal when it does not say (law B3).',
  }),
  holdLimitMsMax: integer('WHEELHOUSE_HOLD_LIMIT_MS_MAX', {
    unit: 'ms',
    fallback: 30_000,
    min: 0,
    max: 30_000,
    reason: 'The most that may be asked for (law B3).',
  }),
  heldMaxMs: integer('WHEELHOUSE_HELD_MAX_MS', {
    unit: 'ms in any 60 s',
    fallback: 30_000,
    min: 0,
    max: 60_000,
    reason: 'All holds of one terminal together: reconnecting cannot freeze an agent (law B3).',
  }),
  endGraceMs: integer('WHEELHOUSE_END_GRACE_MS', {
    unit: 'ms',
    fallback: 1_000,
    min: 0,
    max: 30_000,
    reason:
      'Least time a reader has for the last output of a program that has ended, also one that never holds.',
  }),
  fenceWaitMs: integer('WHEELHOUSE_FENCE_WAIT_MS', {
    unit: 'ms',
    fallback: 15,
    min: 0,
    max: 1_000,
    reason:
      'A fence waits this long for the one unconfirmed frame; a live reader confirms in 3.5 ms, p99 (law P7).',
  }),
  lingerMs: integer('WHEELHOUSE_LINGER_MS', {
    unit: 'ms',
    fallback: 10_000,
    min: 0,
    max: 60_000,
    reason: 'How long a closed stream may take to be read to its end before it is reset.',
  }),
  inputAtomMax: integer('WHEELHOUSE_INPUT_ATOM_MAX', {
    unit: 'bytes',
    fallback: 4096,
    min: 1,
    max: 4096,
    reason:
      'Largest input frame: never interleaved, and no more than a terminal’s line holds (law B5).',
  }),
  inputWaitingBytesMax: integer('WHEELHOUSE_INPUT_WAITING_BYTES_MAX', {
    unit: 'bytes',
    fallback: 64 * 1024,
    min: 4096,
    max: 1024 * 1024,
    reason: 'Input received and not written before the writer is made to wait: sixteen atoms.',
  }),
  inputWaitingFramesMax: integer('WHEELHOUSE_INPUT_WAITING_FRAMES_MAX', {
    unit: 'frames',
    fallback: 256,
    min: 2,
    max: 4096,
    reason: 'The same in frames: single keys that wait cost more than their bytes.',
  }),
  inputBlockMs: integer('WHEELHOUSE_INPUT_BLOCK_MS', {
    unit: 'ms',
    fallback: 1_000,
    min: 1,
    max: 60_000,
    reason: 'How long a frame may be blocked before the rest of it is refused (law B5).',
  }),
  argvBytesMax: integer('WHEELHOUSE_ARGV_BYTES_MAX', {
    unit: 'bytes',
    fallback: 128 * 1024,
    min: 1024,
    max: 256 * 1024,
    reason: 'Command, arguments and environment together; the kernel takes 128 KiB in one string.',
  }),
  statusMs: integer('WHEELHOUSE_STATUS_MS', {
    unit: 'ms',
    fallback: 100,
    min: 10,
    max: 10_000,
    reason: 'Status is coalesced: no follower is told more often.',
  }),
  reconnectMs: integer('WHEELHOUSE_RECONNECT_MS', {
    unit: 'ms',
    fallback: 100,
    min: 10,
    max: 10_000,
    reason: 'Pause before authority is dialled again; short, as nothing is released meanwhile.',
  }),
  callersMax: integer('WHEELHOUSE_CALLERS_MAX', {
    unit: 'certificates',
    fallback: 4000,
    min: 1,
    max: 4096,
    reason:
      'Certificates with living calls on this node; authority ends the stream of a node that introduces more than 4096.',
  }),
  batchQuestionsMax: integer('WHEELHOUSE_BATCH_QUESTIONS_MAX', {
    unit: 'questions',
    fallback: 4096,
    min: 1,
    max: 4096,
    reason: 'Questions in one batch; authority takes no more.',
  }),
  openingsPerCallerMax: integer('WHEELHOUSE_OPENINGS_PER_CALLER_MAX', {
    unit: 'calls',
    fallback: 64,
    min: 1,
    max: 4096,
    reason:
      'Calls of one certificate that authority has not answered yet; what it asks beyond waits its turn. Dropped calls count until they are answered, so nothing piles up behind a slow authority.',
  }),
  releaseWaitMs: integer('WHEELHOUSE_RELEASE_WAIT_MS', {
    unit: 'ms',
    fallback: 2_000,
    min: 0,
    max: 30_000,
    reason:
      'An ended program’s possession waits this long for its release to be durable, so that the worker is vacant when run returns.',
  }),
  drainMs: integer('WHEELHOUSE_DRAIN_MS', {
    unit: 'ms',
    fallback: 5_000,
    min: 0,
    max: 60_000,
    reason: 'Draining cuts what is left after this: programs have 2 s of it to end.',
  }),
} as const;

export type DataConfig = Values<typeof settings>;

/** Reads the configuration. Throws a `SettingFault` where limits contradict one another. */
export function loadConfig(env: Readonly<Record<string, string | undefined>>): DataConfig {
  const config = load(settings, env);
  agree(config.stateDir !== '', 'WHEELHOUSE_STATE must name the state folder');
  agree(
    Number.isInteger(Math.log2(config.ringBytes)),
    'WHEELHOUSE_RING_BYTES must be a power of two',
  );
  agree(
    config.windowBytesDefault <= config.windowBytesMax,
    'the default window exceeds the largest',
  );
  agree(config.holdLimitMsDefault <= config.holdLimitMsMax, 'the default hold exceeds the longest');
  agree(
    config.terminalUid === -1 ? config.terminalGid === -1 : config.terminalGid !== -1,
    'WHEELHOUSE_TERMINAL_UID and WHEELHOUSE_TERMINAL_GID go together',
  );
  agree(
    config.advertise !== '' || !isUnspecified(config.listen),
    'WHEELHOUSE_ADVERTISE must say where clients reach this node: WHEELHOUSE_LISTEN is every address, which is none to dial',
  );
  return config;
}

/** The addresses that mean all of this machine's: 0.0.0.0, and :: in any of its spellings. */
function isUnspecified(listen: string): boolean {
  const host = listen.slice(0, listen.lastIndexOf(':')).replace(/^\[|\]$/g, '');
  return /^(?:0+(?:\.0+){0,3}|[0:]*::?[0:]*|\*|)$/.test(host);
}

function agree(isSo: boolean, message: string): void {
  if (!isSo) {
    throw new SettingFault(message);
  }
}
