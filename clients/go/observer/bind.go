package observer

import (
	"context"
	"errors"
	"time"

	"google.golang.org/grpc"

	authorityv1 "wheelhouse.internal/client/gen/authority/v1"
)

const (
	bindingTime = 10 * time.Second
	answerTime  = 10 * time.Second
)

// Bind makes the operator present until ctx is done: everything they ask hangs on it and ends with it.
//
// It returns when the peer lives, or a *RefusedError or an *UnreachableError. The certificate is not
// renewed: a look that outlives it is closed as CONTROL_UNBOUND.
func Bind(ctx context.Context, authority *grpc.ClientConn) error {
	ctx, cancel := context.WithCancel(ctx)
	stream, err := authorityv1.NewAuthorityServiceClient(authority).Bind(ctx)
	if err != nil {
		cancel()
		return failureOf(err, "authority")
	}
	overdue := time.AfterFunc(bindingTime, cancel)
	first, err := stream.Recv()
	overdue.Stop()
	if err != nil {
		cancel()
		return failureOf(err, "authority")
	}
	if first.GetBound() == nil {
		cancel()
		return &UnreachableError{"authority", errors.New("the bind did not begin with Bound")}
	}
	go func() {
		// Until the stream is over: gRPC frees a stream only for who reads it to its end.
		defer cancel()
		for err == nil {
			_, err = stream.Recv()
		}
	}()
	return nil
}

// Designated is all a look names, and where it is asked for.
type Designated struct {
	WorkerRef  string
	Generation uint64
	Node       string
	// Endpoint is empty when authority knows none.
	Endpoint string
}

// Designate finds the worker of a name as it stands now. A name that nobody has is passed on as it
// is, so that it is the services that say no. It returns a *RefusedError or an *UnreachableError.
func Designate(ctx context.Context, authority *grpc.ClientConn, name string) (Designated, error) {
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	client := authorityv1.NewAuthorityServiceClient(authority)
	listed, err := client.ListWorkers(ctx, &authorityv1.ListWorkersRequest{})
	if err != nil {
		return Designated{}, failureOf(err, "authority")
	}
	for _, worker := range listed.Workers {
		if worker.Name != name && worker.WorkerRef != name {
			continue
		}
		node := worker.DataNode
		if node == "" {
			node = "local"
		}
		return Designated{worker.WorkerRef, worker.WorkerGeneration, node, worker.DataEndpoint}, nil
	}
	return Designated{WorkerRef: name, Generation: 1, Node: "local"}, nil
}
