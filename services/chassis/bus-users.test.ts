/** The table of who may say and hear what is what was ruled, and is rendered as the broker reads it. */
import { expect, test } from 'vitest';
import { busPermissions, busServices, renderBusUsers } from './bus-users.js';

const KEY = `U${'A'.repeat(55)}`;

test('each service may do what it needs and nothing else', () => {
  const authority = 'wheelhouse.hint.authority';
  const provenance = 'wheelhouse.hint.provenance';
  expect(busPermissions).toEqual({
    authority: { publish: [authority], subscribe: [] },
    control: { publish: [], subscribe: [authority, provenance] },
    data: { publish: [], subscribe: [] },
    provenance: { publish: [provenance], subscribe: [authority] },
  });
  expect([...busServices].sort()).toEqual(Object.keys(busPermissions).sort());
});

test('what is allowed is listed, what is nobody’s is denied beside it', () => {
  const text = renderBusUsers([{ publicKey: KEY, permissions: busPermissions.authority }]);
  expect(text).toContain(`nkey: ${KEY}`);
  expect(text).toContain(
    'publish: { allow: ["wheelhouse.hint.authority"], deny: ["$JS.>", "$SYS.>"] }',
  );
});

test('nothing is a denial of everything: an empty list would be no limit at all', () => {
  const text = renderBusUsers([{ publicKey: KEY, permissions: busPermissions.data }]);
  expect(text).toContain('publish: { deny: [">"] }');
  expect(text).toContain('subscribe: { deny: [">"] }');
  expect(text).not.toContain('allow');
});

test('a user without a row may do nothing, and there is no anonymous one', () => {
  const text = renderBusUsers([]);
  expect(text).toContain(
    'default_permissions = { publish: { deny: [">"] }, subscribe: { deny: [">"] } }',
  );
  expect(text).not.toMatch(/no_auth_user|accounts/);
});

test.each(['SUAAAA', '', `${KEY}A`, `S${'A'.repeat(55)}`, `U${'A'.repeat(54)}"`])(
  'a key that is no user’s public key is not written: %s',
  (publicKey) => {
    expect(() => renderBusUsers([{ publicKey, permissions: busPermissions.data }])).toThrow(
      /public key/,
    );
  },
);

test.each([
  'wheelhouse.>',
  'wheelhouse.*.authority',
  '>',
  '',
  'wheelhouse.hint-*',
  'a"] } b',
  'a b',
])('a subject that matches others, or can never match, is not written: %s', (subject) => {
  const widened = { publish: [subject], subscribe: [] };
  expect(() => renderBusUsers([{ publicKey: KEY, permissions: widened }])).toThrow(/subject/);
});
