/** What the broker refuses, tried on a real one with the configuration that is deployed. */
import { type ConnectionOptions, connect, type NatsConnection, nkeyAuthenticator } from 'nats';
import { describe, expect, test } from 'vitest';
import { ensureBusSeed, readBusSeed } from '#chassis/bus-keys.js';
import type { BusService } from '#chassis/bus-users.js';
import { Broker } from './broker.js';
import { onEachBroker } from './broker-kinds.js';

const AUTHORITY = 'wheelhouse.hint.authority';
const PROVENANCE = 'wheelhouse.hint.provenance';

/** Written out once more, and not read off the product: who widens a permission has to come here. */
const allowed: Readonly<
  Record<BusService, { readonly publish: readonly string[]; readonly subscribe: readonly string[] }>
> = {
  authority: { publish: [AUTHORITY], subscribe: [] },
  control: { publish: [], subscribe: [AUTHORITY, PROVENANCE] },
  data: { publish: [], subscribe: [] },
  provenance: { publish: [PROVENANCE], subscribe: [AUTHORITY] },
};

const tried = [
  AUTHORITY,
  PROVENANCE,
  'wheelhouse.hint.control',
  'wheelhouse.hint.data',
  'wheelhouse.hint.authority.more',
  'wheelhouse.hint',
  'wheelhouse.status.data',
  'anything',
  '$JS.API.INFO',
  '$JS.API.STREAM.CREATE.hints',
  '$JS.ACK.x',
  '$SYS.REQ.SERVER.PING',
  '$SYS.REQ.ACCOUNT.PING',
  '_INBOX.somebody.1',
];

const wildcards = [
  '>',
  '*',
  'wheelhouse.>',
  'wheelhouse.*.authority',
  'wheelhouse.hint.*',
  'wheelhouse.hint.>',
  '*.hint.authority',
  '$JS.API.>',
  '$JS.>',
  '$SYS.>',
  '$SYS.REQ.>',
  '_INBOX.>',
];

/** Tries one verb on every subject; returns those that the broker did not refuse. */
async function passed(
  connection: NatsConnection,
  subjects: readonly string[],
  attempt: (subject: string) => void,
): Promise<readonly string[]> {
  const refused = new Set<string>();
  void (async () => {
    for await (const { permissionContext } of connection.status()) {
      refused.add(permissionContext?.subject ?? 'no subject');
    }
  })();
  subjects.forEach(attempt);
  // What the broker says against them comes before its answer to this.
  await connection.flush();
  await new Promise((resolve) => setImmediate(resolve));
  return subjects.filter((subject) => !refused.has(subject));
}

onEachBroker((program) => {
  describe.each(Object.entries(allowed))('%s', (name, { publish, subscribe }) => {
    const service = name as BusService;

    test('says what it may, and nothing else reaches anybody', async (context) => {
      await using broker = await Broker.started(program(context));
      const heard: string[] = [];
      const everything = await broker.connect('admin');
      everything.subscribe('>', { callback: (_error, { subject }) => heard.push(subject) });
      await everything.flush();
      const connection = await broker.connect(service);
      const said = await passed(connection, [...tried, ...wildcards], (subject) =>
        connection.publish(subject, Uint8Array.of(1)),
      );
      await everything.flush();
      expect(said).toEqual(publish);
      expect(heard).toEqual(publish);
      await connection.close();
      await everything.close();
    });

    test('hears what it may, and nothing else', async (context) => {
      await using broker = await Broker.started(program(context));
      const heard: string[] = [];
      const connection = await broker.connect(service);
      const taken = await passed(connection, [...tried, ...wildcards], (subject) => {
        connection.subscribe(subject, {
          callback: (error, message) => {
            if (error === null) {
              heard.push(message.subject);
            }
          },
        });
      });
      expect(taken).toEqual(subscribe);
      const everything = await broker.connect('admin');
      for (const subject of tried) {
        everything.publish(subject, Uint8Array.of(1));
      }
      await everything.flush();
      await connection.flush();
      expect(heard).toEqual(subscribe);
      await connection.close();
      await everything.close();
    });
  });

  test.for<[string, (broker: Broker) => ConnectionOptions]>([
    ['nobody', () => ({})],
    ['a name and a password', () => ({ user: 'authority', pass: 'authority' })],
    ['a token', () => ({ token: 'authority' })],
    [
      'a key that is not on the list',
      (broker) => {
        const path = `${broker.stateDir}/stranger.seed`;
        ensureBusSeed(path);
        return { authenticator: nkeyAuthenticator(readBusSeed(path)) };
      },
    ],
    [
      'a listed key without its seed',
      (broker) => {
        const nkey = ensureBusSeed(broker.seedPath('authority'));
        return { authenticator: () => ({ nkey, sig: 'AAAA' }) };
      },
    ],
  ])('%s is not let in', async ([, as], context) => {
    await using broker = await Broker.started(program(context));
    const options = { servers: broker.address, reconnect: false, ...as(broker) };
    await expect(connect(options)).rejects.toThrow(/Authorization Violation/);
  });
});
