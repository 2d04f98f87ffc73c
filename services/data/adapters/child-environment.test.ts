import { afterEach, expect, test, vi } from 'vitest';
import { childEnvironment, findAccount, programPath } from './child-environment.js';

const passwd = [
  'root:x:0:0:root:/root:/bin/bash',
  'nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin',
  '# a line nobody ruled',
  'agent:x:2000:2000:Agent,,,:/home/agent:',
  'rootless:x:3000:3000::/:/bin/sh',
  'rootless-again:x:3000:3000::/other:/bin/zsh',
].join('\n');

afterEach(() => {
  vi.unstubAllEnvs();
});

test.each([
  { uid: 0, account: { user: 'root', home: '/root', shell: '/bin/bash' } },
  { uid: 65534, account: { user: 'nobody', home: '/nonexistent', shell: '/usr/sbin/nologin' } },
  { uid: 2000, account: { user: 'agent', home: '/home/agent', shell: '/bin/sh' } },
  { uid: 3000, account: { user: 'rootless', home: '/', shell: '/bin/sh' } },
])('user $uid is $account.user', ({ uid, account }) => {
  expect(findAccount(passwd, uid)).toEqual(account);
});

test.each([1, 200, 20000])('user %d is nobody the file knows', (uid) => {
  expect(findAccount(passwd, uid)).toBeUndefined();
});

test.each([
  { service: '/a/node_modules/.bin:/usr/bin:/b/node_modules/.bin/', path: '/usr/bin' },
  { service: '/x/node-gyp-bin:/usr/bin:/bin', path: '/usr/bin:/bin' },
  { service: '/opt/node_modules/.bin/tool/bin:/bin', path: '/opt/node_modules/.bin/tool/bin:/bin' },
  { service: ':/bin::', path: '/bin' },
  { service: '', path: '/usr/local/bin:/usr/bin:/bin' },
  { service: undefined, path: '/usr/local/bin:/usr/bin:/bin' },
  { service: 'node_modules/.bin', path: '/usr/local/bin:/usr/bin:/bin' },
])('of the search path "$service" a program gets "$path"', ({ service, path }) => {
  expect(programPath(service)).toBe(path);
});

test('nothing the service was started with is in it but its search path', () => {
  vi.stubEnv('PATH', '/srv/node_modules/.bin:/usr/bin');
  vi.stubEnv('TMUX', '/tmp/tmux-0/default,1,0');
  vi.stubEnv('NODE_ENV', 'canary-7f3a');
  vi.stubEnv('TERM', 'canary-7f3a');
  vi.stubEnv('LANG', 'canary-7f3a');
  const environment = childEnvironment({});
  expect(Object.keys(environment).sort()).toEqual([
    'HOME',
    'LANG',
    'PATH',
    'SHELL',
    'TERM',
    'USER',
  ]);
  expect(environment).toMatchObject({
    PATH: '/usr/bin',
    LANG: 'C.UTF-8',
    TERM: 'xterm-256color',
  });
  expect(JSON.stringify(environment)).not.toContain('canary');
});

test('what is asked for is added, and wins', () => {
  const environment = childEnvironment({ terminalType: 'vt100', extra: { A: '1', LANG: 'de' } });
  expect(environment).toMatchObject({ A: '1', LANG: 'de', TERM: 'vt100' });
});

test('another user gets the default search path and its own home', () => {
  const other = process.getuid?.() === 65534 ? 0 : 65534;
  const environment = childEnvironment({ uid: other });
  expect(environment['PATH']).toBe('/usr/local/bin:/usr/bin:/bin');
  expect(environment['HOME']).not.toBe(childEnvironment({})['HOME']);
});

test('a user without an account has a number for a name', () => {
  expect(childEnvironment({ uid: 3_999_999 })).toMatchObject({ USER: '3999999', HOME: '/' });
});
