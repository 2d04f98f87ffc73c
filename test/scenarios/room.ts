/** Where most scenarios play: a stack, its operator, and one worker whose agent may run a program. */
import { createHash, randomBytes } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { LoadedIdentity } from '#chassis/identity-files.js';
import type { Designation } from '#client/presentation.js';
import type { Subject } from '../stack/falsifier.js';
import type { Stack, StackOptions } from '../stack/stack.js';
import { ownDist } from '../stack/stack-home.js';
import { startStack } from '../stack/start-stack.js';
import { AgentRun, Operator, raw } from './actors.js';

/** What scenarios are about when nothing is taken out of it. */
export const product: Subject = { distDir: ownDist };

export interface Payload {
  readonly path: string;
  readonly sha256: string;
  /** What a reader has that also saw the prompt `R` before it. */
  readonly afterPromptSha256: string;
}

export class Room implements AsyncDisposable {
  readonly stack: Stack;
  readonly operator: Operator;
  readonly worker: Designation;
  readonly agent: LoadedIdentity;

  private constructor(
    stack: Stack,
    operator: Operator,
    worker: Designation,
    agent: LoadedIdentity,
  ) {
    this.stack = stack;
    this.operator = operator;
    this.worker = worker;
    this.agent = agent;
  }

  static async open(
    { distDir }: Subject,
    settings: StackOptions['settings'] = {},
    options: Omit<StackOptions, 'distDir' | 'settings'> = {},
  ): Promise<Room> {
    const stack = await startStack({ ...options, distDir, settings });
    const operator = await Operator.at(stack);
    const worker = await operator.opens('demo');
    return new Room(stack, operator, worker, await operator.identityOf('demo'));
  }

  /** The agent runs a program in the worker's terminal. */
  async runs(
    argv: readonly string[],
    options: { readonly isHeadless?: boolean } = {},
  ): Promise<AgentRun> {
    return await AgentRun.starts(this.stack, this.agent, this.worker, argv, options);
  }

  /** A raw program that begins when it is told: not by input, which a terminal may still echo. */
  whenTold(script: string): { readonly argv: readonly string[]; readonly tell: () => void } {
    const go = join(this.stack.workspace, 'go');
    return {
      argv: raw(`until [ -e ${go} ]; do sleep 0.02; done; ${script}`),
      tell: () => writeFileSync(go, ''),
    };
  }

  /** A file of random bytes in the workspace, with what it must hash to. */
  payload(bytes: number): Payload {
    const content = randomBytes(bytes);
    const path = join(this.stack.workspace, `payload-${bytes}`);
    writeFileSync(path, content);
    return {
      path,
      sha256: createHash('sha256').update(content).digest('hex'),
      afterPromptSha256: createHash('sha256').update('R').update(content).digest('hex'),
    };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.operator[Symbol.asyncDispose]();
    await this.stack[Symbol.asyncDispose]();
  }
}
