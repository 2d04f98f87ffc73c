/**
 * gRPC server reflection: tells callers what may be called, in both versions that clients speak.
 *
 * https://github.com/grpc/grpc/blob/master/doc/server-reflection.md. Version 1 renamed v1alpha and
 * changed nothing, so one answer serves both.
 */
import { type ServerDuplexStream, status } from '@grpc/grpc-js';
import {
  type ServerReflectionRequest,
  type ServerReflectionResponse,
  ServerReflectionService,
} from '#gen/grpc/reflection/v1/reflection.js';
import { ServerReflectionService as ServerReflectionServiceAlpha } from '#gen/grpc/reflection/v1alpha/reflection.js';
import type { Exposed } from './grpc-server.js';
import { Reflection } from './reflection.js';
import { ServerStream } from './server-stream.js';

/** Answers not taken, beyond which no more is read: each may be the whole contract, 40 KB. */
const untakenMax = 4;

type Call = ServerDuplexStream<ServerReflectionRequest, ServerReflectionResponse>;
type Answer = NonNullable<ServerReflectionResponse['messageResponse']>;

/** Both versions, listing `services`. Their streams end with the drain. */
export function reflectionServices(
  services: readonly string[],
  draining: AbortSignal,
): readonly Exposed[] {
  const reflection = new Reflection();
  const answer = (request: ServerReflectionRequest): Answer =>
    answerTo(request, reflection, services);
  const serverReflectionInfo = (call: Call): void => serve(call, draining, answer);
  return [ServerReflectionService, ServerReflectionServiceAlpha].map((definition) => ({
    definition,
    implementation: { serverReflectionInfo },
  }));
}

function serve(
  call: Call,
  draining: AbortSignal,
  answer: (request: ServerReflectionRequest) => Answer,
): void {
  const stream = new ServerStream<ServerReflectionRequest, ServerReflectionResponse>(
    call,
    untakenMax,
  );
  const refuse = (): void => stream.refuse({ reason: 'SERVICE_DRAINING', facts: {} });
  stream.attach({
    onMessage: (request) => {
      const { host } = request;
      const messageResponse = answer(request);
      stream.send({ validHost: host, originalRequest: request, messageResponse });
    },
    onHalfClose: () => stream.end(),
    onGone: () => draining.removeEventListener('abort', refuse),
  });
  draining.addEventListener('abort', refuse);
  if (draining.aborted) {
    refuse();
  }
}

function answerTo(
  { messageRequest: asked }: ServerReflectionRequest,
  reflection: Reflection,
  services: readonly string[],
): Answer {
  switch (asked?.$case) {
    case 'listServices':
      return {
        $case: 'listServicesResponse',
        value: { service: services.map((name) => ({ name })) },
      };
    case 'fileByFilename':
      return filesOr(asked.value, reflection.named(asked.value));
    case 'fileContainingSymbol':
      return filesOr(asked.value, reflection.declaring(asked.value));
    case 'fileContainingExtension': {
      const { containingType, extensionNumber } = asked.value;
      return filesOr(containingType, reflection.extending(containingType, extensionNumber));
    }
    case 'allExtensionNumbersOfType': {
      const extensionNumber = reflection.extensionsOf(asked.value);
      return extensionNumber === undefined
        ? notFound(asked.value)
        : {
            $case: 'allExtensionNumbersResponse',
            value: { baseTypeName: asked.value, extensionNumber },
          };
    }
    case undefined:
      return failed(status.UNIMPLEMENTED, 'no question of this contract');
  }
}

function filesOr(asked: string, fileDescriptorProto: Buffer[] | undefined): Answer {
  return fileDescriptorProto === undefined
    ? notFound(asked)
    : { $case: 'fileDescriptorResponse', value: { fileDescriptorProto } };
}

function notFound(asked: string): Answer {
  return failed(status.NOT_FOUND, `${asked.slice(0, 200)} is not of this contract`);
}

function failed(errorCode: number, errorMessage: string): Answer {
  return { $case: 'errorResponse', value: { errorCode, errorMessage } };
}
