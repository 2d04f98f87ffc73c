/** Assembles the data service out of its parts. */

import { clientCredentials, clientOptions } from '#chassis/grpc-client.js';
import { startServer } from '#chassis/grpc-server.js';
import { Health } from '#chassis/health.js';
import { readIdentity } from '#chassis/identity-files.js';
import type { Running } from '#chassis/lifecycle.js';
import type { Logger } from '#chassis/logger.js';
import { randomNames } from '#chassis/random-names.js';
import { withStandardServices } from '#chassis/standard-services.js';
import { systemClock } from '#chassis/system-clock.js';
import { AuthorityServiceClient } from '#gen/wheelhouse/authority/v1/authority.js';
import { ResolveStream } from './adapters/authority-link.js';
import { startTerminalHost, type TerminalHostOptions } from './adapters/terminal-host.js';
import { Carriers } from './carriers.js';
import type { DataConfig } from './config.js';
import type { Node } from './node.js';
import { Openings } from './openings.js';
import { partsOf } from './parts.js';
import { dataService } from './service.js';

/** A running data node. */
export interface RunningData extends Running {
  readonly ready: { readonly service: 'data'; readonly node: string; readonly port: number };
  /**
   * Ends at once and tells nobody, as a kill would, programs included; returns when those have ended.
   * For tests.
   */
  abort(): Promise<void>;
}

/**
 * Starts one data node: listens, and asks authority for as long as it runs.
 *
 * Does not wait for authority: until it answers, everything is refused AUTHORITY_UNREACHABLE.
 */
export async function start(config: DataConfig, logger: Logger): Promise<RunningData> {
  const own = readIdentity(config.stateDir, 'service', `data.${config.node}`);
  const clock = systemClock;
  const host = startTerminalHost(hostOptions(config));
  const carriers = new Carriers(logger);
  const credentials = clientCredentials(own.identity, own.rootPem, { plane: 'authority' });
  const client = new AuthorityServiceClient(config.authority, credentials, clientOptions);
  let endpoint = config.advertise;
  const link = new ResolveStream(
    {
      client,
      clock,
      logger,
      dataIncarnation: randomNames.fresh('dn'),
      endpoint: () => endpoint,
      reconnectMs: config.reconnectMs,
      batchQuestionsMax: config.batchQuestionsMax,
      callersMax: config.callersMax,
    },
    carriers,
  );
  const openings = new Openings(config.openingsPerCallerMax);
  const drain = new AbortController();
  const draining = drain.signal;
  const node: Node = { link, carriers, openings, host, clock, config, logger, draining };
  const { identity, rootPem } = own;
  const health = new Health(clock, partsOf(link, carriers, config.terminalsMax));
  const { reflection } = config;
  const exposed = withStandardServices([dataService(node)], { health, reflection });
  const server = await startServer(exposed, {
    listen: config.listen,
    identity,
    rootPem,
    clock,
  });
  endpoint ||= `${config.listen.slice(0, config.listen.lastIndexOf(':'))}:${server.port}`;
  link.open();
  return {
    ready: { service: 'data', node: config.node, port: server.port },
    drain: async () => {
      health.drain();
      link.drain();
      drain.abort();
      carriers.end('DRAINING');
      const hungUp = host[Symbol.asyncDispose]().catch((fault: unknown) => {
        logger.warn({ err: fault }, 'not every program has ended');
      });
      await Promise.all([server.drain(config.drainMs), hungUp]);
      link.close();
      client.close();
    },
    abort: async () => {
      link.close();
      client.close();
      server.abort();
      await host[Symbol.asyncDispose]();
    },
  };
}

function hostOptions(config: DataConfig): TerminalHostOptions {
  const { ringBytes, terminalUid, terminalGid } = config;
  return terminalUid === -1
    ? { ringBytes }
    : { ringBytes, runAs: { uid: terminalUid, gid: terminalGid } };
}
