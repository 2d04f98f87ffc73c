import { fromBinary } from '@bufbuild/protobuf';
import { FileDescriptorProtoSchema } from '@bufbuild/protobuf/wkt';
import { expect, test } from 'vitest';
import { Reflection } from './reflection.js';

const reflection = new Reflection();

function namesOf(files: readonly Uint8Array[] | undefined): string[] | undefined {
  return files?.map((bytes) => fromBinary(FileDescriptorProtoSchema, bytes).name);
}

test('a symbol leads to its file and all that this imports, each once', () => {
  const declaring = namesOf(reflection.declaring('wheelhouse.data.v1.DataService.Present'));
  expect(declaring?.[0]).toBe('wheelhouse/data/v1/data.proto');
  expect(declaring).toContain('google/protobuf/descriptor.proto');
  expect(new Set(declaring).size).toBe(declaring?.length);
  expect(namesOf(reflection.declaring('wheelhouse.data.v1.DataService'))).toEqual(declaring);
  expect(namesOf(reflection.named('wheelhouse/data/v1/data.proto'))).toEqual(declaring);
});

test('extensions are found by what they extend', () => {
  const options = 'google.protobuf.MethodOptions';
  expect(reflection.extensionsOf(options)).toEqual([50201]);
  expect(namesOf(reflection.extending(options, 50201))?.[0]).toBe(
    'wheelhouse/channel/v1/channel.proto',
  );
  expect(reflection.extending(options, 50202)).toBeUndefined();
});

test('what is not of the contract is not found', () => {
  expect(reflection.declaring('wheelhouse.data.v1.Nothing')).toBeUndefined();
  expect(reflection.named('/etc/passwd')).toBeUndefined();
  expect(reflection.extensionsOf('wheelhouse.data.v1.Nothing')).toBeUndefined();
});
