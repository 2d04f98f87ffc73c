package observer

import (
	"fmt"

	"google.golang.org/protobuf/proto"
)

// codec reads and writes messages with the protobuf library that the stubs are generated for. gRPC's
// own does as well, but not in Debian 12: there it is built with an older one, which panics.
type codec struct{}

func (codec) Name() string { return "proto" }

func (codec) Marshal(v interface{}) ([]byte, error) {
	message, isMessage := v.(proto.Message)
	if !isMessage {
		return nil, fmt.Errorf("%T is no message", v)
	}
	return proto.Marshal(message)
}

func (codec) Unmarshal(data []byte, v interface{}) error {
	message, isMessage := v.(proto.Message)
	if !isMessage {
		return fmt.Errorf("%T is no message", v)
	}
	return proto.Unmarshal(data, message)
}
