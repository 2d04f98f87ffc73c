/** The compiled contract, looked up as server reflection asks for it. */
import { type CompiledFile, compiledFiles } from '#gen/descriptors.js';

export class Reflection {
  readonly #byName: ReadonlyMap<string, CompiledFile>;
  readonly #bySymbol: ReadonlyMap<string, CompiledFile>;

  constructor(files: readonly CompiledFile[] = compiledFiles) {
    this.#byName = new Map(files.map((file) => [file.name, file]));
    this.#bySymbol = new Map(
      files.flatMap((file) => file.symbols.map((symbol) => [symbol, file] as const)),
    );
  }

  /** The file and all that it imports, as FileDescriptorProto. Undefined when there is none. */
  named(name: string): Buffer[] | undefined {
    return this.#withImports(this.#byName.get(name));
  }

  /** The same for the file that declares a symbol, by its full name. */
  declaring(symbol: string): Buffer[] | undefined {
    return this.#withImports(this.#bySymbol.get(symbol));
  }

  /** The same for the file that extends a message by a field. */
  extending(typeName: string, fieldNumber: number): Buffer[] | undefined {
    const isIt = (file: CompiledFile): boolean =>
      file.extensions.some(([type, field]) => type === typeName && field === fieldNumber);
    return this.#withImports([...this.#byName.values()].find(isIt));
  }

  /** The fields by which a message is extended. Undefined when there is no such message. */
  extensionsOf(typeName: string): number[] | undefined {
    if (!this.#bySymbol.has(typeName)) {
      return undefined;
    }
    return [...this.#byName.values()].flatMap(({ extensions }) =>
      extensions.filter(([type]) => type === typeName).map(([, field]) => field),
    );
  }

  #withImports(file: CompiledFile | undefined): Buffer[] | undefined {
    if (file === undefined) {
      return undefined;
    }
    const found = new Set<CompiledFile>();
    this.#collect(file, found);
    return [...found].map(({ bytes }) => Buffer.from(bytes, 'base64'));
  }

  #collect(file: CompiledFile, found: Set<CompiledFile>): void {
    if (found.has(file)) {
      return;
    }
    found.add(file);
    for (const name of file.imports) {
      const imported = this.#byName.get(name);
      if (imported !== undefined) {
        this.#collect(imported, found);
      }
    }
  }
}
