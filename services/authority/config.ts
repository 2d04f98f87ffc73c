/** Settings of the authority service: every limit with its unit, default and reason. */
import { integer, load, SettingFault, text, type Values } from '#chassis/settings.js';

const minuteMs = 60_000;
const hourMs = 60 * minuteMs;
const dayMs = 24 * hourMs;

export const settings = {
  stateDir: text(
    'WHEELHOUSE_STATE',
    '.wheelhouse',
    'The state folder: identities, the root, and authority/journal.sqlite, which one process holds for life.',
  ),
  listen: text(
    'WHEELHOUSE_LISTEN',
    '127.0.0.1:0',
    'Loopback on a free port: whoever starts the service reads the port from its ready line.',
  ),
  defaultNode: text(
    'WHEELHOUSE_DEFAULT_NODE',
    'local',
    'The data node of a worker that names none; the name in that node’s certificate.',
  ),
  bus: text(
    'WHEELHOUSE_BUS',
    'direct',
    'How other planes hear that there are new facts: direct (they Tail), or nats://host:port (who was cut off is hinted back at once as well).',
  ),
  busSeed: text(
    'WHEELHOUSE_BUS_SEED',
    '',
    'File with the seed that authority signs the broker’s challenge with; empty for bus/authority.seed below the state folder, or for no user where there is none.',
  ),
  logLevel: text('WHEELHOUSE_LOG_LEVEL', 'info', 'A level of pino’s.'),
  reflection: integer('WHEELHOUSE_REFLECTION', {
    unit: '0 or 1',
    fallback: 0,
    min: 0,
    max: 1,
    reason:
      'Server reflection: 1 describes the contract to whoever has an identity, so that tools call without stubs. wheelhouse up turns it on; a deployment has stubs, and exposes nothing that it does not use.',
  }),
  rebindGraceMs: integer('WHEELHOUSE_REBIND_GRACE_MS', {
    unit: 'milliseconds',
    fallback: 30_000,
    min: 0,
    max: 10 * minuteMs,
    reason:
      'How long a running terminal waits for its agent to bind again. Longer than two keepalives (15 s each), so that a broken connection is noticed and made anew within it.',
  }),
  fenceAckMs: integer('WHEELHOUSE_FENCE_ACK_MS', {
    unit: 'milliseconds',
    fallback: 2_000,
    min: 1,
    max: minuteMs,
    reason:
      'How long a closing waits for its node (law P7). A node waits 15 ms for its last frame, so this is a hundred times what a living one needs.',
  }),
  workersMax: integer('WHEELHOUSE_WORKERS_MAX', {
    unit: 'workers',
    fallback: 1_000,
    min: 1,
    max: 100_000,
    reason:
      'Closed ones count: they can be reopened. 1,000 is what one data node carries; the list of them all fits one message.',
  }),
  peersMax: integer('WHEELHOUSE_PEERS_MAX', {
    unit: 'peers',
    fallback: 4_096,
    min: 2,
    max: 1_000_000,
    reason:
      'Living identities: an actor may have any number of runs, and each is one. Four times what the workers of one node need.',
  }),
  bindsPerPeerMax: integer('WHEELHOUSE_BINDS_PER_PEER_MAX', {
    unit: 'streams',
    fallback: 256,
    min: 1,
    max: 65_536,
    reason:
      'Bind streams of one identity: each process of an operator holds one, and a hundred processes are many.',
  }),
  batchQuestionsMax: integer('WHEELHOUSE_BATCH_QUESTIONS_MAX', {
    unit: 'questions',
    fallback: 4_096,
    min: 1,
    max: 100_000,
    reason:
      'Four questions for each of 1,000 terminals, about 250 KB: under the 512 KiB that a message may have.',
  }),
  callersPerNodeMax: integer('WHEELHOUSE_CALLERS_PER_NODE_MAX', {
    unit: 'callers',
    fallback: 4_096,
    min: 1,
    max: 100_000,
    reason: 'A certificate a connection; four connections for each of 1,000 terminals.',
  }),
  nodeInventoryMs: integer('WHEELHOUSE_NODE_INVENTORY_MS', {
    unit: 'milliseconds',
    fallback: 10_000,
    min: 1,
    max: 10 * minuteMs,
    reason:
      'How long a node’s stream may be open without its inventory, which a node sends first and at once: what comes later is no node, or a stuck one. As long as a Bind’s client waits for its answer.',
  }),
  nodeBacklogMax: integer('WHEELHOUSE_NODE_BACKLOG_MAX', {
    unit: 'answers',
    fallback: 65_536,
    min: 16,
    max: 10_000_000,
    reason:
      'Answers that a node has not taken, a fence counting as one: sixteen full batches, about 16 MB. A node that lags by this many is cut off: it closes by itself, and its next inventory tells where it stands.',
  }),
  runCertificateLifeMs: integer('WHEELHOUSE_RUN_CERTIFICATE_LIFE_MS', {
    unit: 'milliseconds',
    fallback: hourMs,
    min: 10_000,
    max: 30 * dayMs,
    reason:
      'A run renews at half life on its open Bind, so one that is gone has nothing that lives longer. It does not bound what a thief has: whoever holds the key may renew as well, and ask for a certificate for another run.',
  }),
  actorIdentityLifeMs: integer('WHEELHOUSE_ACTOR_IDENTITY_LIFE_MS', {
    unit: 'milliseconds',
    fallback: 30 * dayMs,
    min: minuteMs,
    max: 365 * dayMs,
    reason: 'Kept in a file and used to ask for run certificates; issued anew by opening a worker.',
  }),
  operatorIdentityLifeMs: integer('WHEELHOUSE_OPERATOR_IDENTITY_LIFE_MS', {
    unit: 'milliseconds',
    fallback: 30 * dayMs,
    min: minuteMs,
    max: 365 * dayMs,
    reason: 'What a renewal on an operator’s Bind gives; as long as an actor’s identity.',
  }),
  journalLowWaterBytes: integer('WHEELHOUSE_JOURNAL_LOW_WATER_BYTES', {
    unit: 'bytes',
    fallback: 64 * 1024 * 1024,
    min: 0,
    max: Number.MAX_SAFE_INTEGER,
    reason:
      'Free space under which nothing new begins. Closing 1,000 workers takes less than 2 MB of events and their WAL; the rest is for what else writes to this disk.',
  }),
  journalBallastBytes: integer('WHEELHOUSE_JOURNAL_BALLAST_BYTES', {
    unit: 'bytes',
    fallback: 8 * 1024 * 1024,
    min: 0,
    max: 1024 * 1024 * 1024,
    reason:
      'A file beside the journal that is given up when something else has filled the disk, so that closing still works: four times what closing 1,000 workers takes. 0 for none.',
  }),
  journalRetryMs: integer('WHEELHOUSE_JOURNAL_RETRY_MS', {
    unit: 'milliseconds',
    fallback: 1_000,
    min: 1,
    max: minuteMs,
    reason:
      'Between attempts to make an ending durable on a full disk. The ending is in force meanwhile: refusals need no disk.',
  }),
  tailPageRows: integer('WHEELHOUSE_TAIL_PAGE_ROWS', {
    unit: 'rows',
    fallback: 256,
    min: 1,
    max: 10_000,
    reason:
      'Read and handed over at a time; the next page waits until the reader’s transport has taken it. About 100 KB.',
  }),
  drainDeadlineMs: integer('WHEELHOUSE_DRAIN_DEADLINE_MS', {
    unit: 'milliseconds',
    fallback: 5_000,
    min: 0,
    max: 10 * minuteMs,
    reason: 'How long open calls may take to end: more than a closing’s fenceAckMs.',
  }),
} as const;

export type AuthoritySettings = Values<typeof settings>;

/** Reads the environment and checks that the limits agree. Throws a `SettingFault`. */
export function loadSettings(env: Readonly<Record<string, string | undefined>>): AuthoritySettings {
  const values = load(settings, env);
  if (values.drainDeadlineMs < values.fenceAckMs) {
    throw new SettingFault(
      'WHEELHOUSE_DRAIN_DEADLINE_MS must be at least WHEELHOUSE_FENCE_ACK_MS, or a drain cuts closings short',
    );
  }
  if (values.nodeBacklogMax < values.batchQuestionsMax) {
    throw new SettingFault(
      'WHEELHOUSE_NODE_BACKLOG_MAX must be at least WHEELHOUSE_BATCH_QUESTIONS_MAX, or one full batch cuts its node off',
    );
  }
  return values;
}
