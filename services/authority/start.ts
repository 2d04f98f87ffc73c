/** Assembles the authority service. Importable by tests: everything outside comes as an argument. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Bus, openBus } from '#chassis/bus.js';
import { CertificateAuthority } from '#chassis/certificates.js';
import { type RunningServer, startServer } from '#chassis/grpc-server.js';
import { Health } from '#chassis/health.js';
import { readIdentity, rootPaths } from '#chassis/identity-files.js';
import type { Running } from '#chassis/lifecycle.js';
import { createLogger, type Logger } from '#chassis/logger.js';
import { randomNames } from '#chassis/random-names.js';
import { withStandardServices } from '#chassis/standard-services.js';
import { systemClock } from '#chassis/system-clock.js';
import type { Clock } from '#kernel/clock.js';
import type { FreshNames } from '#kernel/fresh-names.js';
import { ref, type WorldIncarnation } from '#kernel/refs.js';
import { type Refusal, sentenceOf } from '#kernel/refusal.js';
import { Journal } from './adapters/journal.js';
import { trusting } from './adapters/trust.js';
import { Authority } from './authority.js';
import { Closings } from './closings.js';
import type { AuthoritySettings } from './config.js';
import { performing } from './effects.js';
import { Graces } from './graces.js';
import { partsOf } from './parts.js';
import { BindStreams } from './rpc/bind-streams.js';
import { NodeLinks } from './rpc/node-links.js';
import { OpenStreams } from './rpc/open-streams.js';
import type { Room } from './rpc/room.js';
import { authorityService } from './service.js';

export interface StartOptions {
  readonly settings: AuthoritySettings;
  readonly clock?: Clock;
  readonly names?: FreshNames;
  readonly logger?: Logger;
}

/** A running authority. */
export interface RunningAuthority extends Running {
  readonly ready: { readonly service: 'authority'; readonly port: number };
  /** Ends at once and writes nothing more, as a kill would. For tests. */
  abort(): void;
}

/** The service cannot start, for a reason with a name. */
export class StartRefused extends Error {
  override readonly name = 'StartRefused';
  readonly refusal: Refusal;

  constructor(refusal: Refusal) {
    super(`${refusal.reason}: ${sentenceOf(refusal)}`);
    this.refusal = refusal;
  }
}

/**
 * Takes the store, begins a new life of the world and listens.
 *
 * Throws `StartRefused` STORE_IN_USE while another process holds the store, JOURNAL_FULL when not even
 * the beginning can be recorded.
 */
export async function start(options: StartOptions): Promise<RunningAuthority> {
  const { settings, clock = systemClock, names = randomNames } = options;
  const { identity, rootPem } = readIdentity(settings.stateDir, 'service', 'authority');
  const journal = openJournal(settings, names);
  try {
    const room = await assemble(options, journal);
    const worldIncarnation = await beginWorld(room.authority, names);
    room.graces.beginAll();
    room.closings.beginAll();
    const { listen } = settings;
    const health = new Health(clock, partsOf(room, settings.journalLowWaterBytes));
    const exposed = withStandardServices([authorityService(room)], {
      health,
      reflection: settings.reflection,
    });
    const server = await startServer(exposed, {
      listen,
      identity,
      rootPem,
      clock,
    });
    // Whoever is woken dials at once: there must be somebody to answer.
    hintAtFacts(room, worldIncarnation);
    return running(room, server, health);
  } catch (error) {
    journal.close();
    throw error;
  }
}

/** The room with what only its builder may do to it. */
interface Assembly extends Room {
  readonly authority: Authority;
  readonly journal: Journal;
  readonly closings: Closings;
  readonly graces: Graces;
  readonly bus: Bus;
}

function openJournal(settings: AuthoritySettings, names: FreshNames): Journal {
  const path = join(settings.stateDir, 'authority', 'journal.sqlite');
  const journal = Journal.open({ path, names, ballastBytes: settings.journalBallastBytes });
  if (journal.kind === 'refused') {
    throw new StartRefused(journal.refusal);
  }
  return journal.value;
}

async function assemble(options: StartOptions, journal: Journal): Promise<Assembly> {
  const { settings, clock = systemClock, names = randomNames } = options;
  const logger = options.logger ?? createLogger('authority', settings.logLevel);
  const root = rootPaths(settings.stateDir);
  const rootPem = readFileSync(root.certificate, 'utf8');
  const keyPem = readFileSync(root.key, 'utf8');
  const certificates = await CertificateAuthority.load({ certificatePem: rootPem, keyPem });
  const retryMs = settings.journalRetryMs;
  const authority = new Authority({ store: journal, clock, limits: settings, retryMs });
  const links = new NodeLinks();
  const binds = new BindStreams(authority, clock);
  const graces = new Graces(authority, clock, settings.rebindGraceMs);
  const closings = new Closings(authority, links, clock, settings.fenceAckMs);
  const streams = new OpenStreams();
  const { stateDir, bus: address, busSeed: seedPath } = settings;
  const bus = openBus({ address, service: 'authority', stateDir, seedPath, logger });
  authority.onEffect(performing({ authority, links, binds, graces, closings }));
  return {
    authority,
    journal,
    clock,
    names,
    settings,
    certificates,
    verify: trusting(rootPem),
    links,
    binds,
    graces,
    closings,
    streams,
    logger,
    bus,
  };
}

/**
 * Says on the bus that there is more to Tail: at once that this life has begun, which wakes whoever was
 * cut off from the last one, and after each durable fact. A hint, never the fact.
 */
function hintAtFacts({ authority, journal, bus }: Assembly, life: WorldIncarnation): void {
  let hinted = 0n;
  const hintOnce = (): void => {
    if (journal.lastIndex > hinted) {
      hinted = journal.lastIndex;
      bus.hint('authority', { index: hinted, life });
    }
  };
  authority.follow(hintOnce);
  hintOnce();
}

async function beginWorld(authority: Authority, names: FreshNames): Promise<WorldIncarnation> {
  const worldIncarnation = ref<WorldIncarnation>(names.fresh('wd'));
  const begun = await authority.ask({ kind: 'start-world', worldIncarnation });
  if (begun.kind === 'refused') {
    throw new StartRefused(begun.refusal);
  }
  return worldIncarnation;
}

function running(room: Assembly, server: RunningServer, health: Health): RunningAuthority {
  const { authority, settings, streams, binds, graces, closings, journal, bus } = room;
  const release = (): void => {
    authority.halt();
    binds[Symbol.dispose]();
    graces[Symbol.dispose]();
    closings[Symbol.dispose]();
    void bus[Symbol.asyncDispose]();
    journal.close();
  };
  return {
    ready: { service: 'authority', port: server.port },
    drain: async () => {
      health.drain();
      streams.drain();
      await server.drain(settings.drainDeadlineMs);
      release();
    },
    abort: () => {
      streams.abandon();
      server.abort();
      release();
    },
  };
}
