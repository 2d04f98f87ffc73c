/** The compiled command on real services: what a shell sees of it. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { type Ended, ScratchDeployment } from './scratch-deployment.js';
import { StateFolder } from './state-folder.js';

vi.setConfig({ testTimeout: 60_000, hookTimeout: 60_000 });

let deployment: ScratchDeployment;

beforeAll(async () => {
  deployment = new ScratchDeployment();
  await deployment.wheelhouse('up', '-d');
  await deployment.wheelhouse('worker', 'open', 'demo');
});
afterAll(async () => {
  await deployment[Symbol.asyncDispose]();
});

function run(...command: readonly string[]): Promise<Ended> {
  return deployment.wheelhouse('run', 'demo', '--', ...command);
}

/** A script that goes on once the test says so: nothing is missed by being late. */
function afterMark(name: string, script: string): string {
  return `until [ -e ${name} ]; do sleep 0.05; done; ${script}`;
}

function mark(name: string): void {
  writeFileSync(join(deployment.dir, name), '');
}

test('status is done while everything answers', async () => {
  const { code, stdout } = await deployment.wheelhouse('status', '--json');
  expect(code).toBe(0);
  expect(JSON.parse(stdout)).toMatchObject({
    isUp: true,
    services: [
      { service: 'authority', health: 'serving', parts: { journal: 'serving', bus: 'serving' } },
      { health: 'serving', parts: { 'authority-link': 'serving', terminals: 'serving' } },
    ],
  });
});

test('doctor tells of the services that run', async () => {
  const { stdout } = await deployment.wheelhouse('doctor', '--json');
  const findings = JSON.parse(stdout) as { what: string; verdict: string; detail: string }[];
  const services = findings.filter(({ what }) => what === 'authority' || what === 'data.local');
  expect(services.map(({ verdict }) => verdict)).toEqual(['ok', 'ok']);
  expect(services[0]?.detail).toMatch(/^127\.0\.0\.1:\d+ serving$/);
});

test('a second up is refused as store-in-use', async () => {
  const { code, stdout, stderr } = await deployment.wheelhouse('up');
  expect({ code, stdout }).toEqual({ code: 3, stdout: '' });
  const { pid } = new StateFolder(deployment.stateDir).up() ?? {};
  expect(stderr).toMatch(
    new RegExp(`^refused: store-in-use: .* up already \\(process ${pid}, authority=.* data=`),
  );
});

test('a second up -d says where the services are, and is done', async () => {
  const { code, stdout, stderr } = await deployment.wheelhouse('up', '-d');
  expect(code).toBe(0);
  expect(stdout).toMatch(/^ready authority=\S+ data\.local=\S+\n$/);
  const { pid } = new StateFolder(deployment.stateDir).up() ?? {};
  expect(stderr).toContain(`up already, as process ${pid}\n`);
});

test.each([
  ['its own code', ['sh', '-c', 'exit 7'], 7],
  ['128 and its signal', ['sh', '-c', 'kill -9 $$'], 137],
  ['127 for what is not there', ['no-such-program'], 127],
  ['126 for what cannot be executed', ['/etc/passwd'], 126],
])('run ends with %s', async (_what, command, code) => {
  expect(await run(...command)).toMatchObject({ code });
});

test('run shows the terminal’s bytes and passes stdin on', async () => {
  const started = deployment.start(['run', 'demo', '--', 'cat'], 'hello\n\x04');
  expect(await started.ended).toEqual({ code: 0, stdout: 'hello\r\nhello\r\n', stderr: '' });
});

test('whatever of run is not the program’s is 125 and has its name', async () => {
  const { code, stderr } = await deployment.wheelhouse('run', 'nosuch', '--', 'ls');
  expect(code).toBe(125);
  expect(stderr).toMatch(/^refused: caller-unidentified: there is no identity agent\/nosuch in /);
  expect(stderr).toContain('wheelhouse worker open nosuch');
});

test('on a terminal run says who works where, on a line of its own', async () => {
  const shown = deployment.startInTerminal(['run', 'demo', '--', 'sh', '-c', 'echo BEGUN']);
  expect(await shown.ended).toBe(0);
  expect(shown.shown()).toMatch(/^running sh at demo as agent demo, in \S+\r\nBEGUN\r\n/);
  const quiet = deployment.startInTerminal(['-q', 'run', 'demo', '--', 'sh', '-c', 'echo BEGUN']);
  expect(await quiet.ended).toBe(0);
  expect(quiet.shown()).toMatch(/^BEGUN\r\n/);
});

test('a name that does not do is told with its rule', async () => {
  const { code, stderr } = await deployment.wheelhouse('worker', 'open', 'Bad Name');
  expect(code).toBe(3);
  expect(stderr).toMatch(/^refused: request-invalid: name must be 1 to 63 .*, not "Bad Name"\.\n$/);
});

test('an identity that the folder has not is told with how to issue it', async () => {
  const said = await deployment.wheelhouse('--as', 'agent/bob', 'run', 'demo', '--', 'ls');
  expect(said.code).toBe(125);
  expect(said.stderr).toMatch(/no identity agent\/bob in .*identity issue agent\/bob/);
});

test('a look at a vacant worker is refused by name, for programs as well', async () => {
  const people = await deployment.wheelhouse('watch', 'demo');
  expect(people).toMatchObject({ code: 3, stdout: '' });
  expect(people.stderr).toMatch(/^refused: locus-not-occupied: /);
  const programs = await deployment.wheelhouse('watch', 'demo', '--json');
  expect(programs).toMatchObject({ code: 3, stdout: '' });
  expect(JSON.parse(programs.stderr)).toMatchObject({ refused: 'locus-not-occupied' });
});

test('watch --wait sees the program from where it is then, to its end', async () => {
  const look = deployment.start(['watch', 'demo', '--wait']);
  await look.printed(/waiting/);
  const program = run('sh', '-c', afterMark('seen', 'echo seen'));
  await look.printed(/watching demo/);
  mark('seen');
  const { code, stdout, stderr } = await look.ended;
  expect({ code, stdout }).toEqual({ code: 0, stdout: 'seen\r\n' });
  expect(stderr).toContain('closed: ended acked=6 sent=6 produced=6 exit=0');
  expect(await program).toMatchObject({ code: 0 });
});

test('on a terminal answers to queries are no keys, q leaves, and every mode is undone', async () => {
  const script = afterMark('shown', 'printf "\\033[?1049h\\033[?1000hSHOWN\\n"; sleep 600');
  const program = deployment.start(['run', 'demo', '--headless', '--', 'sh', '-c', script]);
  const look = deployment.startInTerminal(['watch', 'demo', '--wait']);
  await look.printed(/watching demo/);
  mark('shown');
  await look.printed(/SHOWN/);
  look.type('\x1bP1$r2 q\x1b\\');
  look.type('\x1b[?62;4c');
  look.type('ls\r');
  look.type('q');
  expect(await look.ended).toBe(0);
  const after = look.shown().slice(look.shown().indexOf('SHOWN'));
  for (const part of ['\x1b[?1049l', '\x1b[?1000l', '\x1b[?25h', 'closed: detached']) {
    expect(after).toContain(part);
  }
  expect(after).not.toContain('ls');
  program.child.kill('SIGTERM');
  expect(await program.ended).toMatchObject({ code: 143 });
});

test('closing a worker closes the look at it by that reason, and ends the run', async () => {
  await deployment.wheelhouse('worker', 'open', 'short');
  const program = deployment.start(['run', 'short', '--', 'sh', '-c', 'echo on; sleep 600']);
  await program.printed(/on/);
  const look = deployment.start(['watch', 'short']);
  await look.printed(/watching short/);
  expect(await deployment.wheelhouse('worker', 'close', 'short')).toMatchObject({
    code: 0,
    stdout: 'closed short (fenced)\n',
  });
  const { code, stderr } = await look.ended;
  expect(code).toBe(3);
  expect(stderr).toContain('closed: worker-closed');
  expect(await program.ended).toMatchObject({ code: 125 });
});

test('a service that dies is started again where it was', async () => {
  const state = new StateFolder(deployment.stateDir);
  const endpoints = state.endpoints();
  const pid = state.up()?.services['authority'] ?? 0;
  process.kill(pid, 'SIGKILL');
  while (state.up()?.services['authority'] === pid) {
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  // Data may not have met it yet: until then it does not serve, and status says so.
  await vi.waitFor(
    async () => expect(await deployment.wheelhouse('status')).toMatchObject({ code: 0 }),
    15_000,
  );
  expect(state.endpoints()).toEqual(endpoints);
});

test('services whose up was killed are ended by the next, which then holds the folder', async () => {
  const state = new StateFolder(deployment.stateDir);
  const before = state.up();
  process.kill(before?.pid ?? 0, 'SIGKILL');
  expect(await deployment.wheelhouse('up', '-d')).toMatchObject({ code: 0 });
  expect(state.up()?.pid).not.toBe(before?.pid);
  for (const pid of Object.values(before?.services ?? {})) {
    expect(isAlive(pid)).toBe(false);
  }
  expect(await deployment.wheelhouse('status')).toMatchObject({ code: 0 });
});

/** A zombie is not: whoever inherited it has not looked yet. */
function isAlive(pid: number): boolean {
  try {
    return !/\) Z /.test(readFileSync(`/proc/${pid}/stat`, 'latin1'));
  } catch {
    return false;
  }
}

test('down ends no agent unasked, and every one when it is', async () => {
  const background = await deployment.wheelhouse('run', 'demo', '-d', '--', 'sleep', '600');
  expect(background).toEqual({ code: 0, stdout: 'demo\n', stderr: '' });
  const refused = await deployment.wheelhouse('down');
  expect(refused.code).toBe(3);
  expect(refused.stderr).toMatch(/^refused: agents-running: .*workers=demo/);
  expect(await deployment.wheelhouse('down', '--yes')).toMatchObject({ code: 0 });
  expect(await deployment.wheelhouse('status')).toMatchObject({ code: 4 });
});

test('while the services are down run says so, whoever it would run as', async () => {
  for (const worker of ['demo', 'nosuch']) {
    const { code, stderr } = await deployment.wheelhouse('run', worker, '--', 'ls');
    expect(code).toBe(125);
    expect(stderr).toMatch(
      /^unreachable: (?:the services of .* are down|authority .*nobody listens)/,
    );
  }
});

test('down names the agents of services whose up was killed, too, and ends none unasked', async () => {
  await deployment.wheelhouse('up', '-d');
  expect(await deployment.wheelhouse('run', 'demo', '-d', '--', 'sleep', '600')).toMatchObject({
    code: 0,
  });
  process.kill(new StateFolder(deployment.stateDir).up()?.pid ?? 0, 'SIGKILL');
  const refused = await deployment.wheelhouse('down');
  expect(refused.code).toBe(3);
  expect(refused.stderr).toMatch(/^refused: agents-running: .*workers=demo/);
  expect(await deployment.wheelhouse('down', '--yes')).toMatchObject({ code: 0, stdout: 'down\n' });
  expect(await deployment.wheelhouse('down')).toMatchObject({
    code: 0,
    stdout: 'nothing was up\n',
  });
});

test.each([
  ['n', 'n\r'],
  ['Ctrl-C', '\x03'],
  ['Ctrl-D', '\x04'],
])('%s at the question of down ends nothing and shows no stack', async (_what, typed) => {
  await deployment.wheelhouse('up', '-d');
  await deployment.wheelhouse('run', 'demo', '-d', '--', 'sleep', '600');
  const asked = deployment.startInTerminal(['down']);
  await asked.printed(/go on\?/);
  asked.type(typed);
  expect(await asked.ended).toBe(3);
  expect(asked.shown()).toMatch(/refused: agents-running: nothing was ended/);
  expect(asked.shown()).not.toMatch(/AbortError|--yes/);
  expect(await deployment.wheelhouse('status')).toMatchObject({ code: 0 });
  await deployment.wheelhouse('down', '--yes');
});

test('the demo shows a few frames, says what to do next, and drains when asked', async () => {
  const demo = deployment.start(['demo', '--seconds', '1']);
  await demo.printed(/watch demo/);
  demo.child.kill('SIGINT');
  const { code, stdout } = await demo.ended;
  expect(code).toBe(0);
  expect(stdout).toMatch(/^ready authority=\S+ data\.local=\S+\n/);
  expect(stdout).toContain('agent demo at work');
  expect(stdout).not.toContain('\x1b');
  expect(stdout).toContain(`npx wheelhouse --state '${deployment.stateDir}' watch demo`);
});
