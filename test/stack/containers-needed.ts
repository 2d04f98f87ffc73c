/** Skips every test of the container tier, with the reason, on a machine where it cannot run. */
import { beforeEach, inject } from 'vitest';
import { needsThat } from './machine.js';

beforeEach((context) => {
  const deployment = inject('deployment');
  needsThat(context, 'docker', typeof deployment === 'string' ? deployment : undefined);
});
