// Command observe prints the bytes of a worker's terminal until it ends.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"google.golang.org/grpc"

	"wheelhouse.internal/client/observer"
)

const (
	exitDone        = 0
	exitUsage       = 2
	exitRefused     = 3
	exitUnreachable = 4
)

func main() {
	options, err := parse(os.Args[1:])
	if err != nil {
		say("observe: %v", err)
		os.Exit(exitUsage)
	}
	// A closed stdout is a reader that left, not a reason to die.
	signal.Ignore(syscall.SIGPIPE)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	go func() {
		// The first signal leaves; a second one ends the process at once.
		<-ctx.Done()
		stop()
	}()
	os.Exit(run(ctx, options))
}

func run(ctx context.Context, options options) int {
	script, err := openTranscript(options.transcript)
	if err != nil {
		say("observe: %v", err)
		return exitUsage
	}
	code, err := observe(ctx, options, script)
	var refusal *observer.RefusedError
	var silence *observer.UnreachableError
	switch {
	case err == nil:
		return code
	case errors.As(err, &refusal):
		script.refused(refusal)
		say("refused: %v", err)
		return exitRefused
	case errors.As(err, &silence):
		script.note(unreachable{"unreachable", silence.Service})
		say("unreachable: %v", err)
		return exitUnreachable
	default:
		say("observe: %v", err)
		return exitUsage
	}
}

func observe(ctx context.Context, options options, script *transcript) (int, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	identity, err := options.state.Identity(options.role, options.name)
	if err != nil {
		return 0, err
	}
	endpoints, err := options.state.Endpoints()
	if err != nil {
		return 0, err
	}
	authority, err := observer.Dial(endpoints.Authority, "authority", identity)
	if err != nil {
		return 0, err
	}
	defer authority.Close()
	if !options.noBind {
		if err := observer.Bind(ctx, authority); err != nil {
			return 0, err
		}
		script.note(bound{"bound"})
	}
	worker, err := observer.Designate(ctx, authority, options.worker)
	if err != nil {
		return 0, err
	}
	endpoint := worker.Endpoint
	if endpoint == "" {
		endpoint = endpoints.Data[worker.Node]
	}
	if endpoint == "" {
		facts := map[string]string{"node": worker.Node}
		return 0, &observer.RefusedError{Reason: "OWNER_UNREACHABLE", Facts: facts}
	}
	data, err := observer.Dial(endpoint, "data", identity)
	if err != nil {
		return 0, err
	}
	defer data.Close()
	return look(ctx, data, options.terms(worker), script, options.transcript != "-")
}

func look(
	ctx context.Context, data *grpc.ClientConn, terms observer.Terms, script *transcript, prints bool,
) (int, error) {
	presentation, err := observer.Present(ctx, data, terms)
	if err != nil {
		return 0, err
	}
	defer presentation.Close()
	script.note(sized{"opened", decimal(presentation.OutSeq), presentation.Rows, presentation.Cols})
	presentation.OnResized = func(to observer.Resized) {
		script.note(sized{"resized", decimal(to.OutSeq), to.Rows, to.Cols})
	}
	var to io.Writer = script
	if prints {
		to = io.MultiWriter(os.Stdout, script)
	}
	end, err := presentation.CopyTo(to)
	if err != nil || (end.IsLost() && ctx.Err() != nil) {
		// Left, or whoever read stdout has: the program goes on.
		script.closed(closed{Reason: "DETACHED", AckedSeq: decimal(presentation.TakenSeq())})
		return exitDone, nil
	}
	script.ended(end)
	return report(end), nil
}

func report(end *observer.End) int {
	if end.IsLost() {
		say("closed: transport-lost acked=%d (%v)", end.AckedSeq, end.Err)
		return exitUnreachable
	}
	name := strings.ReplaceAll(strings.ToLower(end.Reason), "_", "-")
	say("closed: %s acked=%d sent=%d produced=%d", name, end.AckedSeq, end.SentSeq, end.ProducedSeq)
	if end.Reason == "ENDED" {
		return exitDone
	}
	return exitRefused
}

func openTranscript(target string) (*transcript, error) {
	switch target {
	case "":
		return newTranscript(nil), nil
	case "-":
		return newTranscript(os.Stdout), nil
	}
	file, err := os.Create(target)
	if err != nil {
		return nil, err
	}
	return newTranscript(file), nil
}

func say(format string, words ...interface{}) {
	fmt.Fprintf(os.Stderr, format+"\n", words...)
}
