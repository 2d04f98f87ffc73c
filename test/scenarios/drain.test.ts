/** A node that goes down tells whoever follows its status, and does not wait for them. */
import type { ServiceError } from '@grpc/grpc-js';
import { describe, expect, test } from 'vitest';
import { refusalOf } from '#chassis/refusal-status.js';
import { connect } from '#client/connect.js';
import { within } from '../stack/eventually.js';
import { falsifier, type Subject } from '../stack/falsifier.js';
import { product, Room } from './room.js';

async function followerOfADrain(subject: Subject): Promise<void> {
  await using room = await Room.open(subject);
  const control = await room.stack.identityFor('service', 'control');
  using data = connect(room.stack.endpoints.data, 'data', control);
  const call = data.client.followStatus({});
  const ended = new Promise<string>((resolve) => {
    call.on('error', (error: ServiceError) => resolve(refusalOf(error)?.reason ?? error.message));
    call.on('end', () => resolve('ended'));
  });
  await new Promise((resolve) => {
    call.once('data', resolve);
  });
  call.resume();
  await room.stack.drain('data');
  expect(await within('the follower is told', 10_000, ended)).toBe('SERVICE_DRAINING');
}

describe('a drain', () => {
  test('is told to a follower by name', () => followerOfADrain(product));
  falsifier(
    'service-draining to followers',
    {
      file: 'services/data/start.ts',
      find: 'drain.abort();',
      replace: '',
    },
    followerOfADrain,
  );
});
