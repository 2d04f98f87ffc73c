import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  beginClosing,
  type ClosingEffect,
  type ClosingInput,
  type ClosingState,
  type ClosingStep,
  stepClosing,
} from './closing.js';

const states = {
  'awaiting node': { kind: 'awaiting-node' },
  'fencing presentations': { kind: 'fencing', scope: 'PRESENTATIONS', isAttached: true },
  'fencing possession': { kind: 'fencing', scope: 'POSSESSION', isAttached: true },
  'fencing presentations of no terminal': {
    kind: 'fencing',
    scope: 'PRESENTATIONS',
    isAttached: false,
  },
  'fencing possession of no terminal': { kind: 'fencing', scope: 'POSSESSION', isAttached: false },
  finished: { kind: 'finished' },
} as const satisfies Readonly<Record<string, ClosingState>>;

const inputs = {
  'node ready': { kind: 'node-ready' },
  'presentations acked': { kind: 'acked', scope: 'PRESENTATIONS' },
  'possession acked': { kind: 'acked', scope: 'POSSESSION' },
  'node gone': { kind: 'node-gone' },
  deadline: { kind: 'deadline' },
  waited: { kind: 'waited' },
} as const satisfies Readonly<Record<string, ClosingInput>>;

const presentations: ClosingStep = {
  state: states['fencing presentations'],
  effects: [{ kind: 'send-fence', scope: 'PRESENTATIONS' }, { kind: 'arm-deadline' }],
};
const possession: ClosingStep = {
  state: states['fencing possession'],
  effects: [{ kind: 'send-fence', scope: 'POSSESSION' }],
};
const presentationsOfNone: ClosingStep = {
  state: states['fencing presentations of no terminal'],
  effects: presentations.effects,
};
const possessionOfNone: ClosingStep = {
  state: states['fencing possession of no terminal'],
  effects: possession.effects,
};
const finish: ClosingStep = { state: states.finished, effects: [{ kind: 'finish' }] };
const finishInTime: ClosingStep = {
  state: states.finished,
  effects: [{ kind: 'disarm-deadline' }, { kind: 'finish' }],
};
const cut: ClosingStep = {
  state: states['awaiting node'],
  effects: [{ kind: 'cut-node' }, { kind: 'report-disconnect' }],
};

/** Nothing to wait for: the node is not, and who waits is not told more than is so. */
const finishUnacknowledged = (first: ClosingEffect): ClosingStep => ({
  state: states.finished,
  effects: [first, { kind: 'report-disconnect' }, { kind: 'finish' }],
});

function still(state: ClosingState, ...effects: readonly ClosingEffect[]): ClosingStep {
  return { state, effects };
}

const awaiting = states['awaiting node'];
const gone = still(awaiting, { kind: 'disarm-deadline' });

const table: Readonly<
  Record<keyof typeof states, Readonly<Record<keyof typeof inputs, ClosingStep>>>
> = {
  'awaiting node': {
    'node ready': presentations,
    'presentations acked': still(awaiting),
    'possession acked': still(awaiting),
    'node gone': still(awaiting),
    deadline: still(awaiting),
    waited: still(awaiting, { kind: 'report-disconnect' }),
  },
  'fencing presentations': {
    'node ready': presentations,
    'presentations acked': possession,
    'possession acked': still(states['fencing presentations']),
    'node gone': gone,
    deadline: cut,
    waited: still(states['fencing presentations'], { kind: 'report-disconnect' }),
  },
  'fencing possession': {
    'node ready': presentations,
    'presentations acked': still(states['fencing possession']),
    'possession acked': finishInTime,
    'node gone': gone,
    deadline: cut,
    waited: still(states['fencing possession'], { kind: 'report-disconnect' }),
  },
  'fencing presentations of no terminal': {
    'node ready': presentationsOfNone,
    'presentations acked': possessionOfNone,
    'possession acked': still(states['fencing presentations of no terminal']),
    'node gone': finishUnacknowledged({ kind: 'disarm-deadline' }),
    deadline: finishUnacknowledged({ kind: 'cut-node' }),
    waited: still(states['fencing presentations of no terminal'], { kind: 'report-disconnect' }),
  },
  'fencing possession of no terminal': {
    'node ready': presentationsOfNone,
    'presentations acked': still(states['fencing possession of no terminal']),
    'possession acked': finishInTime,
    'node gone': finishUnacknowledged({ kind: 'disarm-deadline' }),
    deadline: finishUnacknowledged({ kind: 'cut-node' }),
    waited: still(states['fencing possession of no terminal'], { kind: 'report-disconnect' }),
  },
  finished: {
    'node ready': still(states.finished),
    'presentations acked': still(states.finished),
    'possession acked': still(states.finished),
    'node gone': still(states.finished),
    deadline: still(states.finished),
    waited: still(states.finished, { kind: 'report-fenced' }),
  },
};

const rows = Object.entries(table).flatMap(([state, byInput]) =>
  Object.entries(byInput).map(
    ([input, step]) => [state as keyof typeof states, input as keyof typeof inputs, step] as const,
  ),
);

describe('P7: presentations, then the possession, then closed', () => {
  test.each(rows)('while %s: %s', (state, input, step) => {
    expect(stepClosing(states[state], inputs[input])).toEqual(step);
  });

  test.each([
    { what: 'a terminal', isAttached: true, where: 'connected', step: presentations },
    { what: 'no terminal', isAttached: false, where: 'connected', step: presentationsOfNone },
    {
      what: 'a terminal',
      isAttached: true,
      where: 'away',
      step: still(awaiting, { kind: 'report-disconnect' }),
    },
    { what: 'no terminal', isAttached: false, where: 'away', step: finish },
  ])('begins for $what on a node that is $where', ({ isAttached, where, step }) => {
    expect(beginClosing({ isAttached, isNodeConnected: where === 'connected' })).toEqual(step);
  });
});

test('P7 holds after any order of events: it finishes only after both acknowledgements of one stream', () => {
  const input = fc.constantFrom(...Object.values(inputs));
  fc.assert(
    fc.property(fc.array(input), (given) => {
      let step = beginClosing({ isAttached: true, isNodeConnected: true });
      let acked: string[] = [];
      for (const each of given) {
        if (
          each.kind === 'acked' &&
          step.state.kind === 'fencing' &&
          each.scope === step.state.scope
        ) {
          acked.push(each.scope);
        } else if (each.kind === 'node-gone' || each.kind === 'node-ready') {
          acked = step.state.kind === 'finished' ? acked : [];
        } else if (each.kind === 'deadline' && step.state.kind === 'fencing') {
          acked = [];
        }
        step = stepClosing(step.state, each);
        if (step.effects.some(({ kind }) => kind === 'finish')) {
          expect(acked).toEqual(['PRESENTATIONS', 'POSSESSION']);
        }
      }
    }),
  );
});
