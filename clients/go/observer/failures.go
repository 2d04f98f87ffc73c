package observer

import (
	"fmt"
	"sort"
	"strings"

	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	refusalv1 "wheelhouse.internal/client/gen/refusal/v1"
)

// RefusedError says that the service ruled no. Find it with errors.As.
type RefusedError struct {
	// Reason is the refusal's name in UPPER_SNAKE_CASE.
	Reason string
	// Facts are what the refused may know.
	Facts map[string]string
}

func (e *RefusedError) Error() string {
	name := strings.ReplaceAll(strings.ToLower(e.Reason), "_", "-")
	if len(e.Facts) == 0 {
		return name
	}
	told := make([]string, 0, len(e.Facts))
	for key, value := range e.Facts {
		told = append(told, key+"="+value)
	}
	sort.Strings(told)
	return fmt.Sprintf("%s (%s)", name, strings.Join(told, ", "))
}

// UnreachableError says that no ruling came. What was asked may have happened.
type UnreachableError struct {
	// Service is the plane that was asked.
	Service string
	Err     error
}

func (e *UnreachableError) Error() string {
	return fmt.Sprintf("%s gave no answer: %v", e.Service, e.Err)
}

func (e *UnreachableError) Unwrap() error { return e.Err }

const errorInfo = "type.googleapis.com/google.rpc.ErrorInfo"

// failureOf says what a failed call means: a status without a refusal's name is never read as one.
func failureOf(err error, service string) error {
	for _, detail := range status.Convert(err).Proto().GetDetails() {
		info := &refusalv1.ErrorInfo{}
		if detail.GetTypeUrl() != errorInfo || proto.Unmarshal(detail.GetValue(), info) != nil {
			continue
		}
		if info.Domain == "wheelhouse" {
			return &RefusedError{Reason: info.Reason, Facts: info.Metadata}
		}
	}
	return &UnreachableError{Service: service, Err: err}
}
