/**
 * Settings of a service: each with its environment variable, unit, default and reason.
 *
 * docs/limits.md is generated from these tables, so a limit cannot exist undocumented.
 */
export interface Setting<Value> {
  readonly variable: string;
  readonly unit: string;
  readonly fallback: Value;
  /** Why this default, and what it must agree with. */
  readonly reason: string;
  readonly parse: (text: string) => Value;
}

export class SettingFault extends Error {
  override readonly name = 'SettingFault';
}

interface Range {
  readonly unit: string;
  readonly fallback: number;
  readonly min: number;
  readonly max: number;
  readonly reason: string;
}

/** A whole number within a range. Anything else stops the service from starting. */
export function integer(variable: string, range: Range): Setting<number> {
  const parse = (text: string): number => {
    // Nothing at all would read as 0.
    const value = text.trim() === '' ? Number.NaN : Number(text);
    if (!Number.isSafeInteger(value) || value < range.min || value > range.max) {
      throw new SettingFault(
        `${variable} must be a whole number from ${range.min} to ${range.max}`,
      );
    }
    return value;
  };
  return { variable, unit: range.unit, fallback: range.fallback, reason: range.reason, parse };
}

/** Free text, such as an address or a folder. */
export function text(variable: string, fallback: string, reason: string): Setting<string> {
  return { variable, unit: 'text', fallback, reason, parse: (value) => value };
}

export type Settings = Readonly<Record<string, Setting<number> | Setting<string>>>;

export type Values<Table extends Settings> = {
  readonly [Key in keyof Table]: Table[Key] extends Setting<infer Value> ? Value : never;
};

/** Reads every setting of a table. Throws a `SettingFault` that names the variable. */
export function load<Table extends Settings>(
  table: Table,
  env: Readonly<Record<string, string | undefined>>,
): Values<Table> {
  const entries = Object.entries(table).map(([key, setting]) => {
    const given = env[setting.variable];
    return [key, given === undefined ? setting.fallback : setting.parse(given)];
  });
  return Object.fromEntries(entries) as Values<Table>;
}
