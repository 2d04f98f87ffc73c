/** A stack with its operator present, and agents that run programs at new workers. */
import { AgentBind } from '#client/agent-bind.js';
import { connect, type DataConnection } from '#client/connect.js';
import { ControlBind } from '#client/control-bind.js';
import { Possession } from '#client/possession.js';
import type { Designation } from '#client/presentation.js';
import { designationOf, Workers } from '#client/workers.js';
import { startProcesses } from '../stack/processes.js';
import type { Stack } from '../stack/stack.js';

const OPERATOR = 'bench';
const ACTOR = 'bench';
const GEOMETRY = { rows: 24, cols: 80 };

export class Scene implements AsyncDisposable {
  readonly stack: Stack;
  readonly control: ControlBind;
  readonly workers: Workers;
  readonly agent: AgentBind;
  readonly #data: DataConnection;

  private constructor(stack: Stack, control: ControlBind, agent: AgentBind, data: DataConnection) {
    this.stack = stack;
    this.control = control;
    this.workers = new Workers(control.authority);
    this.agent = agent;
    this.#data = data;
  }

  static async open(): Promise<Scene> {
    const stack = await startProcesses({
      settings: {
        authority: { WHEELHOUSE_LOG_LEVEL: 'info' },
        data: { WHEELHOUSE_LOG_LEVEL: 'info' },
      },
    });
    try {
      const { authority, data } = stack.endpoints;
      const operator = await stack.identityFor('human-control', OPERATOR);
      const agent = await stack.identityFor('agent', ACTOR);
      return new Scene(
        stack,
        await ControlBind.open(authority, operator),
        await AgentBind.open(authority, agent),
        connect(data, 'data', agent),
      );
    } catch (error) {
      await stack[Symbol.asyncDispose]();
      throw error;
    }
  }

  /** The operator's name, as `--as human-control/NAME` has it. */
  get operator(): string {
    return OPERATOR;
  }

  /** A new worker for the scene's agent. */
  async open(name: string): Promise<Designation> {
    const { workspace } = this.stack;
    return designationOf(await this.workers.open({ name, actor: ACTOR, workspace }));
  }

  /** Starts a shell command at a worker; nobody reads its output here. */
  async run(worker: Designation, command: string): Promise<Possession> {
    await new Workers(this.agent.authority).occupy(worker);
    const terms = {
      worker,
      argv: ['bash', '-c', command],
      env: {},
      geometry: GEOMETRY,
      isHeadless: true,
    };
    return await Possession.open(this.#data, terms, { take: () => undefined });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#data[Symbol.dispose]();
    this.agent.close();
    this.control.close();
    await this.stack[Symbol.asyncDispose]();
  }
}
