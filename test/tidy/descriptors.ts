/** The contract as buf understands it: walked field by field, not as text. */
import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import {
  createFileRegistry,
  type DescMessage,
  type DescMethod,
  type FileRegistry,
  fromBinary,
  getExtension,
  hasExtension,
} from '@bufbuild/protobuf';
import {
  type FieldOptions,
  FileDescriptorSetSchema,
  type MethodOptions,
} from '@bufbuild/protobuf/wkt';

/** What may call, by path and by operation of a stream; as in proto/gen/channels.ts. */
export interface Declared {
  readonly methods: Readonly<Record<string, readonly string[]>>;
  readonly operations: Readonly<Record<string, Readonly<Record<string, readonly string[]>>>>;
}

/** Compiles the .proto files of a folder. */
export function readDescriptors(root: string): FileRegistry {
  const buf = join(root, 'node_modules', '.bin', 'buf');
  const image = execFileSync(buf, ['build', '-o', '-'], {
    cwd: join(root, 'proto'),
    maxBuffer: 64 * 1024 * 1024,
  });
  return createFileRegistry(fromBinary(FileDescriptorSetSchema, image));
}

/** Every RPC, with its gRPC path. */
export function methodsOf(registry: FileRegistry): readonly [path: string, method: DescMethod][] {
  return [...registry.files].flatMap((file) =>
    file.services.flatMap((service) =>
      service.methods.map((method): [string, DescMethod] => [
        `/${service.typeName}/${method.name}`,
        method,
      ]),
    ),
  );
}

/** Whether a gRPC path is of a contract of ours. Others carry no options of ours. */
export function isOurs(path: string): boolean {
  return path.startsWith('/wheelhouse.');
}

/** The channels declared on every RPC of ours and on every operation a client may send inside a stream. */
export function declaredChannels(registry: FileRegistry): Declared {
  const methods: Record<string, readonly string[]> = {};
  const operations: Record<string, Record<string, readonly string[]>> = {};
  for (const [path, method] of methodsOf(registry).filter(([path]) => isOurs(path))) {
    methods[path] = channels(registry, method.proto.options, 'callers');
    const [oneof] = isClientStream(method) ? method.input.oneofs : [];
    if (oneof !== undefined) {
      operations[path] = Object.fromEntries(
        oneof.fields.map((field) => [
          field.localName,
          channels(registry, field.proto.options, 'operation_callers'),
        ]),
      );
    }
  }
  return { methods, operations };
}

function isClientStream(method: DescMethod): boolean {
  return method.methodKind === 'client_streaming' || method.methodKind === 'bidi_streaming';
}

function channels(
  registry: FileRegistry,
  options: MethodOptions | FieldOptions | undefined,
  name: string,
): readonly string[] {
  const extension = registry.getExtension(`wheelhouse.channel.v1.${name}`);
  const names = registry.getEnum('wheelhouse.channel.v1.Channel');
  if (extension === undefined || names === undefined || options === undefined) {
    return [];
  }
  const values = hasExtension(options, extension) ? getExtension(options, extension) : [];
  return (values as readonly number[]).map((value) =>
    (names.value[value]?.name ?? '').replace('CHANNEL_', ''),
  );
}

/** What a channel may send or be sent: each field of every message its RPCs reach. */
export function fieldsReachedBy(registry: FileRegistry, channel: string): readonly string[] {
  const { methods } = declaredChannels(registry);
  const seen = new Set<DescMessage>();
  for (const [path, method] of methodsOf(registry)) {
    if (methods[path]?.includes(channel) === true) {
      reach(method.input, seen);
      reach(method.output, seen);
    }
  }
  return [...seen].flatMap((message) =>
    message.fields.map((field) => `${message.typeName}.${field.name}`),
  );
}

function reach(message: DescMessage, seen: Set<DescMessage>): void {
  if (seen.has(message)) {
    return;
  }
  seen.add(message);
  for (const field of message.fields) {
    if (field.message !== undefined) {
      reach(field.message, seen);
    }
  }
}

/** What a page never names and is never told (law P1). */
const FORBIDDEN = /peer|attachment|carrier|epoch|descriptor|locus|incarnation|(?:^|_)fd(?:_|$)/;

/** The fields that break law P1. */
export function forbiddenTo(fields: readonly string[]): readonly string[] {
  return fields.filter((field) => FORBIDDEN.test(field.slice(field.lastIndexOf('.') + 1)));
}
