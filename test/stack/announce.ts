/** Tells the command where the services of a state folder are, as `wheelhouse up` does. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';

export function announceEndpoints(
  stateDir: string,
  endpoints: Readonly<Record<'authority' | 'data', string>>,
): void {
  writeFileSync(join(stateDir, 'endpoints.json'), JSON.stringify(endpoints), { mode: 0o600 });
}
