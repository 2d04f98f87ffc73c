import { expect, test } from 'vitest';
import { RefusedError, UnreachableError } from '#client/call-errors.js';
import { type Worker, WorkerState } from '#gen/wheelhouse/authority/v1/authority.js';
import { coloursFor } from './colours.js';
import { FrameCapture } from './frame-capture.js';
import { failureText } from './invocation.js';
import { identityOf } from './operator.js';
import { formatSize, parseSize } from './size.js';
import { StateFolder } from './state-folder.js';
import { formatTable, visible } from './table.js';
import { refusalToEnd } from './worker-words.js';

const refused = new RefusedError({ reason: 'LOCUS_NOT_OCCUPIED', facts: { worker: 'demo' } });

test('a refusal is told by name and sentence, and to programs by name and facts', () => {
  expect(failureText(refused, false)).toMatch(/^refused: locus-not-occupied: \S.*worker=demo/);
  expect(JSON.parse(failureText(refused, true))).toEqual({
    refused: 'locus-not-occupied',
    facts: { worker: 'demo' },
  });
});

test('ending everything is refused as agents-running while somebody is at work', () => {
  const worker = (name: string, state: Worker['state']): Worker => ({
    workerRef: `wk_${name}`,
    workerGeneration: 1n,
    name,
    actor: name,
    openedBy: 'ada',
    workspace: '/',
    state,
    driveAllowed: false,
    delegationAllowed: false,
    dataNode: 'local',
    dataEndpoint: '',
  });
  const resting = [worker('a', WorkerState.VACANT), worker('b', WorkerState.CLOSED)];
  expect(refusalToEnd(resting)).toBeUndefined();
  const busy = [worker('c', WorkerState.RUNNING), worker('d', WorkerState.WATCHED)];
  expect(refusalToEnd([...resting, ...busy])).toEqual({
    reason: 'AGENTS_RUNNING',
    facts: { workers: 'c, d' },
  });
});

test('an identity the folder has not is refused as caller-unidentified', () => {
  const state = new StateFolder('/nowhere');
  const nobody = { role: 'human-control', name: 'nobody' } as const;
  expect(() => identityOf(state, nobody)).toThrow(/^caller-unidentified: .*human-control\/nobody/);
});

test('silence is told with what to do next', () => {
  const text = failureText(new UnreachableError('authority at 127.0.0.1:1', 'gone'), false);
  expect(text).toMatch(/^unreachable: authority at 127\.0\.0\.1:1 gave no answer: gone\n.*up/);
});

test('a size is columns, then rows', () => {
  expect(parseSize('120x40')).toEqual({ cols: 120, rows: 40 });
  expect(formatSize({ cols: 120, rows: 40 })).toBe('120x40');
  for (const text of ['', '120', '0x40', '120x0', '99999x1', '-1x2', '1x2x3', ' 1x2']) {
    expect(parseSize(text)).toBeUndefined();
  }
});

test('columns line up, whatever is painted', () => {
  const paint = coloursFor({ isTTY: true }, {});
  const rows = [
    ['a', paint.good('ok'), 'x'],
    ['long', 'missing', ''],
  ];
  expect(formatTable(['N', 'STATE', 'D'], rows).split('\n')).toEqual([
    'N     STATE    D',
    `a     ${paint.good('ok')}       x`,
    'long  missing',
  ]);
});

test('nothing is painted where nobody sees it or somebody does not want it', () => {
  expect(coloursFor({}, {}).bad('x')).toBe('x');
  expect(coloursFor({ isTTY: true }, { NO_COLOR: '1' }).bad('x')).toBe('x');
  expect(coloursFor({ isTTY: true }, {}).bad('x')).toBe('\x1b[31mx\x1b[0m');
});

test('text from elsewhere cannot act on the terminal', () => {
  expect(visible('a\x1b[2Jb\n')).toBe('a\\x1b[2Jb\\x0a');
});

test('captured frames are whole ones, as plain text', () => {
  const capture = new FrameCapture();
  for (const text of [
    'cut off\x1b[Hone\x1b[K\r\n',
    '\x1b[Htwo\x1b[1m!\x1b[K\r\n\x1b[J',
    '\x1b[Hcut',
  ]) {
    capture.feed(Buffer.from(text));
  }
  expect(capture.some(3)).toEqual(['one', 'two!']);
});
