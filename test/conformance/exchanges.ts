/** What observers are told, one exchange each: the same for every language, byte for byte. */
import { createHash, randomBytes } from 'node:crypto';
import { expect } from 'vitest';
import { WorkerState } from '#gen/wheelhouse/authority/v1/authority.js';
import { Operator } from '../scenarios/actors.js';
import { eventually } from '../stack/eventually.js';
import { mintStranger } from '../stack/state-folder.js';
import type { Observed, Seat, TranscriptEvent } from './seat.js';

export interface Exchange {
  /** As a sentence that the observer keeps. */
  readonly name: string;
  play(seat: Seat): Promise<Observed>;
  /** What the last line says, whatever the language. */
  readonly last: TranscriptEvent;
  readonly code: number;
  /** What is left of a transcript whose positions depend on the machine's haste, once they are checked. */
  settle?(observed: Observed): string;
}

/** 5 MB, as many windows as make a reader acknowledge on the way; the same for every observer. */
const RANDOM = randomBytes(5_000_000);
/** Every byte value, invalid UTF-8, and NUL in the middle of a character. */
const AWKWARD = Buffer.concat([
  Buffer.from(Array.from({ length: 256 }, (_, value) => value)),
  Buffer.from([0xc3, 0x28, 0xe2, 0x00, 0x82, 0xac, 0xf0, 0x9f, 0xff]),
]);

const refused = (reason: string, facts: Readonly<Record<string, string>>): TranscriptEvent => ({
  event: 'refused',
  reason,
  facts,
});

export const refusals: readonly Exchange[] = [
  {
    name: 'a worker that nobody has is refused',
    play: async (seat) => await seat.observes('nobody').ended(),
    last: refused('WORKER_UNKNOWN', { worker: 'nobody' }),
    code: 3,
  },
  {
    name: 'a closed worker is refused',
    play: async (seat) => {
      await seat.operator.workers.close(await seat.operator.opens('closed'));
      return await seat.observes('closed').ended();
    },
    last: refused('WORKER_CLOSED', { worker: 'closed' }),
    code: 3,
  },
  {
    name: 'a worker at which nobody sits is refused',
    play: async (seat) => {
      await seat.operator.opens('vacant');
      return await seat.observes('vacant').ended();
    },
    last: refused('LOCUS_NOT_OCCUPIED', { worker: 'vacant' }),
    code: 3,
  },
  {
    name: 'another generation than the living one is refused',
    play: async (seat) => {
      await seat.operator.opens('older');
      return await seat.observes('older', '--generation', '7').ended();
    },
    last: refused('WORKER_GENERATION_ADVANCED', {
      currentGeneration: '1',
      expectedGeneration: '7',
    }),
    code: 3,
  },
  {
    name: 'another operator’s worker is refused',
    play: async (seat) => {
      await seat.operator.opens('foreign');
      let observed: Observed | undefined;
      await seat.withoutOperator(async () => {
        await using _other = await Operator.at(seat.stack, 'other');
        observed = await seat.observes('foreign', '--as', 'human-control/other').ended();
      });
      return observed!;
    },
    last: refused('WORKER_NOT_OPENED_BY_CALLER', { worker: 'foreign' }),
    code: 3,
  },
  {
    name: 'an operator who is not bound is refused',
    play: async (seat) => {
      let observed: Observed | undefined;
      await seat.withoutOperator(async () => {
        observed = await seat.observes('nobody', '--no-bind').ended();
      });
      return observed!;
    },
    last: refused('CONTROL_CHANNEL_NOT_BOUND', {}),
    code: 3,
  },
  {
    name: 'an agent that asks to look is refused',
    play: async (seat) => {
      await seat.stack.identityFor('agent', 'curious');
      return await seat.observes('nobody', '--as', 'agent/curious').ended();
    },
    last: refused('ROLE_NOT_HUMAN_CONTROL', { callerRole: 'agent' }),
    code: 3,
  },
  {
    name: 'a certificate from another root does not get in',
    play: async (seat) => {
      const stranger = await mintStranger(seat.stack.stateDir, 'human-control', 'stranger');
      seat.keep('human-control', 'stranger', stranger);
      return await seat.observes('nobody', '--as', 'human-control/stranger').ended();
    },
    last: { event: 'unreachable', service: 'authority' },
    code: 4,
  },
  {
    name: 'another plane than the one meant is turned away',
    play: async (seat) => {
      const { data } = seat.stack.endpoints;
      return await seat
        .observes('nobody', '--state', seat.misled({ authority: data, data }))
        .ended();
    },
    last: { event: 'unreachable', service: 'authority' },
    code: 4,
  },
  {
    name: 'nobody listens',
    play: async (seat) => {
      const nowhere = seat.misled({ authority: '127.0.0.1:1', data: '127.0.0.1:1' });
      return await seat.observes('nobody', '--state', nowhere).ended();
    },
    last: { event: 'unreachable', service: 'authority' },
    code: 4,
  },
];

/** Looks at a program from its first byte to its end. */
async function watched(seat: Seat, name: string, script: string): Promise<Observed> {
  await using working = await seat.works(name, script);
  const observing = seat.observes(name);
  await observing.tells('opened');
  working.tell();
  return await observing.ended();
}

export const looks: readonly Exchange[] = [
  {
    name: 'every byte value arrives as it was written, and the exit code',
    play: async (seat) => {
      const path = seat.file('awkward', AWKWARD);
      const observed = await watched(seat, 'awkward', `cat ${path}; exit 3`);
      expect(observed.stdout).toEqual(AWKWARD);
      return observed;
    },
    last: { event: 'closed', reason: 'ENDED', exit_code: 3, acked_seq: String(AWKWARD.length) },
    code: 0,
  },
  {
    name: 'a character that comes in halves is not mended',
    play: async (seat) => {
      const halves = "printf '\\342'; sleep 0.2; printf '\\202\\254'";
      const observed = await watched(seat, 'halves', halves);
      expect(observed.stdout.toString()).toBe('€');
      return observed;
    },
    last: { event: 'closed', reason: 'ENDED', exit_code: 0, acked_seq: '3' },
    code: 0,
  },
  {
    name: '5 MB of random bytes are exact',
    play: async (seat) => {
      const observed = await watched(seat, 'random', `cat ${seat.file('random', RANDOM)}`);
      expect(sha256(observed.stdout)).toBe(sha256(RANDOM));
      return observed;
    },
    last: { event: 'closed', reason: 'ENDED', exit_code: 0, acked_seq: String(RANDOM.length) },
    code: 0,
  },
  {
    name: 'a program that a signal killed',
    play: async (seat) => await watched(seat, 'killed', 'printf R; kill -9 $$'),
    last: { event: 'closed', reason: 'ENDED', exit_signal: 9 },
    code: 0,
  },
  {
    name: 'a size that changes is told',
    play: async (seat) => {
      await using working = await seat.works('resized', 'printf R');
      const observing = seat.observes('resized');
      await observing.tells('opened');
      working.run.possession.resize({ rows: 30, cols: 100 });
      await observing.tells('resized');
      working.tell();
      return await observing.ended();
    },
    last: { event: 'closed', reason: 'ENDED' },
    code: 0,
  },
  {
    name: 'a look at another that lives is refused',
    play: async (seat) => {
      await using working = await seat.works('taken', 'sleep 60');
      const look = await seat.operator.looksAt(working.worker);
      const observed = await seat.observes('taken').ended();
      await look.presentation.detach();
      return observed;
    },
    last: refused('PRESENTATION_EXISTS', { worker: 'taken' }),
    code: 3,
  },
  {
    name: 'a look takes the place of an older one',
    play: async (seat) => {
      await using working = await seat.works('replacing', 'printf R');
      const look = await seat.operator.looksAt(working.worker);
      const observing = seat.observes('replacing', '--replace');
      await observing.tells('opened');
      expect(await look.ended).toMatchObject({ kind: 'closed', reason: 'REPLACED' });
      working.tell();
      return await observing.ended();
    },
    last: { event: 'closed', reason: 'ENDED', acked_seq: '1' },
    code: 0,
  },
];

/** Opens a look that has been shown one byte and whose program stays, and does something to it. */
async function interrupted(
  seat: Seat,
  name: string,
  interrupt: (context: {
    readonly working: Awaited<ReturnType<Seat['works']>>;
    readonly observing: ReturnType<Seat['observes']>;
  }) => Promise<void> | void,
): Promise<Observed> {
  await using working = await seat.works(name, 'printf R; sleep 60');
  const observing = seat.observes(name);
  await observing.tells('opened');
  working.tell();
  await observing.prints('R');
  await interrupt({ working, observing });
  return await observing.ended();
}

export const endings: readonly Exchange[] = [
  {
    name: 'the worker is closed',
    play: async (seat) =>
      await interrupted(seat, 'closing', async ({ working }) => {
        await seat.operator.workers.close(working.worker);
      }),
    last: { event: 'closed', reason: 'WORKER_CLOSED', acked_seq: '1', sent_seq: '1' },
    code: 3,
  },
  {
    name: 'a newer look takes its place',
    play: async (seat) =>
      await interrupted(seat, 'replaced', async ({ working }) => {
        const look = await seat.operator.looksAt(working.worker, { replace: true });
        await look.presentation.detach();
      }),
    last: { event: 'closed', reason: 'REPLACED', acked_seq: '1', sent_seq: '1' },
    code: 3,
  },
  {
    name: 'the agent leaves',
    play: async (seat) =>
      await interrupted(seat, 'leaving', ({ working }) => working.run.possession.end()),
    last: { event: 'closed', reason: 'RELEASED', acked_seq: '1' },
    code: 3,
  },
  {
    name: 'the operator’s presence ends',
    play: async (seat) => {
      await using working = await seat.works('unbound', 'printf R; sleep 60');
      let observed: Observed | undefined;
      const observing = seat.observes('unbound', '--no-bind');
      await observing.tells('opened');
      working.tell();
      await observing.prints('R');
      await seat.withoutOperator(async () => {
        observed = await observing.ended();
      });
      return observed!;
    },
    last: { event: 'closed', reason: 'CONTROL_UNBOUND', acked_seq: '1' },
    code: 3,
  },
  {
    name: 'the observer leaves, and the agent goes on',
    play: async (seat) =>
      await interrupted(seat, 'left', async ({ observing }) => {
        observing.signal('SIGINT');
        await observing.ended();
        expect(await stateOf(seat, 'left')).toBe(WorkerState.RUNNING);
      }),
    last: { event: 'closed', reason: 'DETACHED', acked_seq: '1' },
    code: 0,
  },
  {
    name: 'a reader that stands still and holds the terminal for too long is lagging',
    play: async (seat) => {
      const path = seat.file('random', RANDOM);
      await using working = await seat.works('lagging', `cat ${path}; sleep 60`);
      const observing = seat.observes('lagging', '--hold-limit', '0.5');
      await observing.tells('opened');
      working.tell();
      await eventually('the look is over for the services', async () => {
        return (await stateOf(seat, 'lagging')) === WorkerState.RUNNING;
      });
      return await observing.ended();
    },
    last: { event: 'closed', reason: 'LAGGING' },
    code: 3,
    settle: (observed) => {
      const { bytes, acked, sent, produced } = positionsIn(observed);
      expect(bytes).toBe(sent);
      expect(observed.stdout.length).toBe(bytes);
      expect(observed.stdout.equals(RANDOM.subarray(0, bytes))).toBe(true);
      expect(acked).toBeLessThanOrEqual(sent);
      expect(sent).toBeLessThan(produced);
      return observed.transcript.replace(/"(?:\d+|[0-9a-f]{64})"/g, '"…"');
    },
  },
];

export const crashes: readonly Exchange[] = [
  {
    name: 'data is killed',
    play: async (seat) => {
      const observed = await interrupted(seat, 'crashed', async () => {
        await seat.stack.crash('data');
      });
      await seat.stack.restart('data');
      await seat.stack.joined();
      return observed;
    },
    last: { event: 'closed', reason: 'TRANSPORT_LOST', acked_seq: '1' },
    code: 4,
  },
  {
    name: 'authority is killed: an idle look learns it from the next life',
    play: async (seat) => {
      const observed = await interrupted(seat, 'orphaned', async () => {
        await seat.stack.crash('authority');
        await seat.stack.restart('authority');
        await seat.stack.joined();
      });
      await seat.returns();
      return observed;
    },
    last: { event: 'closed', reason: 'WORLD_RESTARTED', acked_seq: '1' },
    code: 3,
  },
];

async function stateOf(seat: Seat, name: string): Promise<WorkerState | undefined> {
  return (await seat.operator.workers.list()).find((worker) => worker.name === name)?.state;
}

function positionsIn({
  transcript,
}: Observed): Readonly<Record<'bytes' | 'acked' | 'sent' | 'produced', number>> {
  const events = transcript
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as Record<string, string>);
  const output = events.find(({ event }) => event === 'output');
  const closed = events.find(({ event }) => event === 'closed');
  return {
    bytes: Number(output?.['bytes']),
    acked: Number(closed?.['acked_seq']),
    sent: Number(closed?.['sent_seq']),
    produced: Number(closed?.['produced_seq']),
  };
}

function sha256(bytes: Buffer): string {
  return createHash('sha256').update(bytes).digest('hex');
}
