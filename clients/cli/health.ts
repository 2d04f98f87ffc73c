/** Whether a service answers, and is the one it should be. */
import type { Client } from '@grpc/grpc-js';
import type { Connection } from '#client/connect.js';

const ANSWER_MS = 3_000;

export type Health = 'serving' | 'unreachable';

/** Serving means that a connection with certificates checked both ways was made. */
export function healthOf(connection: Connection<Client>): Promise<Health> {
  return new Promise((resolve) => {
    connection.client.waitForReady(Date.now() + ANSWER_MS, (error) => {
      resolve(error === undefined || error === null ? 'serving' : 'unreachable');
    });
  });
}
