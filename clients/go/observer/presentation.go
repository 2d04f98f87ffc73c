package observer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"google.golang.org/grpc"

	datav1 "wheelhouse.internal/client/gen/data/v1"
	refusalv1 "wheelhouse.internal/client/gen/refusal/v1"
)

const openingTime = 15 * time.Second

// refusalBy: a stream may be closed before it began; where the reason is also a refusal's, that is
// what Present returns.
var refusalBy = map[string]string{
	"WORKER_CLOSED":         "WORKER_CLOSED",
	"GENERATION_ADVANCED":   "WORKER_GENERATION_ADVANCED",
	"CONTROL_UNBOUND":       "CONTROL_CHANNEL_NOT_BOUND",
	"AUTHORITY_UNREACHABLE": "AUTHORITY_UNREACHABLE",
	"DRAINING":              "SERVICE_DRAINING",
}

// Terms are what a look names, and how it reads.
type Terms struct {
	WorkerRef  string
	Generation uint64
	// HoldLimitMs is how long this reader may hold the terminal; the service's own when nil.
	HoldLimitMs *uint32
	// Replace says that an older look of the same operator gives way.
	Replace bool
}

// Resized says that the terminal has another size from a byte position of the output on.
type Resized struct {
	OutSeq     uint64
	Rows, Cols uint32
}

// End is how a look ended.
type End struct {
	// Reason is the close reason's name; TRANSPORT_LOST when the transport broke before one came:
	// then every byte before AckedSeq is here, and no other, and Err says what was seen.
	Reason string
	// AckedSeq, SentSeq and ProducedSeq are the next byte not acknowledged, sent and produced.
	AckedSeq, SentSeq, ProducedSeq uint64
	// ExitCode or ExitSignal, not both, when the program has ended.
	ExitCode, ExitSignal *uint32
	Err                  error
}

// IsLost says whether the transport broke before a reason came.
func (end *End) IsLost() bool { return end.Reason == "TRANSPORT_LOST" }

// Presentation is an operator's look at a worker's terminal.
type Presentation struct {
	// OutSeq is where the look begins: nothing earlier is shown.
	OutSeq uint64
	// Rows and Cols are the terminal's size at OutSeq.
	Rows, Cols uint32
	// OnResized is told each new size. Set it before CopyTo.
	OnResized func(Resized)

	stream     datav1.DataService_PresentClient
	cancel     context.CancelFunc
	ledger     ackLedger
	programEnd *datav1.End
}

// Present opens a look; the caller closes it. It returns a *RefusedError by the first broken link of
// the chain, or an *UnreachableError. It needs a living Bind of the same certificate.
func Present(ctx context.Context, data *grpc.ClientConn, terms Terms) (*Presentation, error) {
	ctx, cancel := context.WithCancel(ctx)
	first, stream, err := open(ctx, cancel, data, terms)
	if err != nil {
		cancel()
		return nil, err
	}
	size := first.GetGeometry()
	return &Presentation{
		OutSeq:    first.OutSeq,
		Rows:      size.GetRows(),
		Cols:      size.GetCols(),
		OnResized: func(Resized) {},
		stream:    stream,
		cancel:    cancel,
		ledger:    newAckLedger(first.OutSeq, first.WindowBytes),
	}, nil
}

func open(
	ctx context.Context, cancel func(), data *grpc.ClientConn, terms Terms,
) (*datav1.Opened, datav1.DataService_PresentClient, error) {
	overdue := time.AfterFunc(openingTime, cancel)
	defer overdue.Stop()
	stream, err := datav1.NewDataServiceClient(data).Present(ctx)
	if err != nil {
		return nil, nil, failureOf(err, "data")
	}
	request := &datav1.PresentRequest_Open{Open: &datav1.PresentOpen{
		WorkerRef:                terms.WorkerRef,
		ExpectedWorkerGeneration: terms.Generation,
		HoldLimitMs:              terms.HoldLimitMs,
		Replace:                  terms.Replace,
	}}
	// Send fails with io.EOF when the stream is over already; Recv then says why.
	if err := stream.Send(&datav1.PresentRequest{Operation: request}); err != nil && err != io.EOF {
		return nil, nil, failureOf(err, "data")
	}
	response, err := stream.Recv()
	if err != nil {
		return nil, nil, failureOf(err, "data")
	}
	if opened := response.GetOpened(); opened != nil {
		return opened, stream, nil
	}
	if reason, isKnown := closeReason(response.GetClosed().GetReason()); isKnown {
		if refusal, isRefusal := refusalBy[reason]; isRefusal {
			return nil, nil, &RefusedError{Reason: refusal}
		}
	}
	return nil, nil, &UnreachableError{"data", errors.New("the stream did not begin with Opened")}
}

// TakenSeq is the next byte that the writer of CopyTo does not have.
func (p *Presentation) TakenSeq() uint64 { return p.ledger.taken }

// Close leaves the look; the program goes on.
func (p *Presentation) Close() { p.cancel() }

// CopyTo writes the terminal's bytes until the look ends. A write that returns says that they are
// taken: nothing is acknowledged before. The error is the writer's own.
func (p *Presentation) CopyTo(w io.Writer) (*End, error) {
	for {
		response, err := p.stream.Recv()
		if err != nil {
			return p.lose(failureOf(err, "data")), nil
		}
		switch event := response.Event.(type) {
		case *datav1.PresentResponse_Output:
			end, err := p.pass(w, event.Output)
			if end != nil || err != nil {
				return end, err
			}
		case *datav1.PresentResponse_Geometry:
			size := event.Geometry.GetGeometry()
			p.OnResized(Resized{event.Geometry.OutSeq, size.GetRows(), size.GetCols()})
		case *datav1.PresentResponse_End:
			p.programEnd = event.End
			p.acknowledge()
		case *datav1.PresentResponse_Closed:
			return p.close(event.Closed), nil
		}
		// Anything else is an event of a newer service.
	}
}

func (p *Presentation) pass(w io.Writer, frame *datav1.OutputFrame) (*End, error) {
	if !p.ledger.receive(frame.Seq, len(frame.Payload)) {
		return p.lose(fmt.Errorf("a frame at %d where %d was due", frame.Seq, p.ledger.received)), nil
	}
	if _, err := w.Write(frame.Payload); err != nil {
		return nil, err
	}
	p.ledger.taken = p.ledger.received
	if p.ledger.isDue(len(frame.Payload)) {
		p.acknowledge()
	}
	return nil, nil
}

func (p *Presentation) acknowledge() {
	if p.ledger.taken == p.ledger.acked {
		return
	}
	ack := &datav1.PresentRequest_Ack{Ack: &datav1.OutputAck{NextSeq: p.ledger.taken}}
	// Send fails only on a stream that is over, and Recv still gives what came before its end.
	_ = p.stream.Send(&datav1.PresentRequest{Operation: ack})
	p.ledger.acked = p.ledger.taken
}

func (p *Presentation) close(closed *datav1.Closed) *End {
	reason, isKnown := closeReason(closed.Reason)
	if !isKnown {
		return p.lose(fmt.Errorf("it closed for a reason unknown here (%d)", closed.Reason))
	}
	// What was acknowledged may still have been on its way when the service closed.
	acked := closed.AckedSeq
	if p.ledger.acked > acked {
		acked = p.ledger.acked
	}
	end := &End{Reason: reason, AckedSeq: acked, SentSeq: closed.SentSeq, ProducedSeq: closed.ProducedSeq}
	return end.withExit(closed.Exit)
}

// lose is the end without a reason. After End every byte is here all the same, and the program's end
// is known.
func (p *Presentation) lose(err error) *End {
	taken := p.ledger.taken
	if p.programEnd != nil && p.programEnd.OutSeq == taken {
		end := &End{Reason: "ENDED", AckedSeq: taken, SentSeq: taken, ProducedSeq: taken}
		return end.withExit(p.programEnd.Exit)
	}
	return &End{Reason: "TRANSPORT_LOST", AckedSeq: taken, Err: err}
}

func (end *End) withExit(exit *datav1.Exit) *End {
	switch how := exit.GetHow().(type) {
	case *datav1.Exit_Code:
		end.ExitCode = &how.Code
	case *datav1.Exit_Signal:
		end.ExitSignal = &how.Signal
	}
	return end
}

// closeReason is false for a number that these stubs do not know: enums are open, and grow.
func closeReason(number refusalv1.CloseReason) (string, bool) {
	name, isKnown := refusalv1.CloseReason_name[int32(number)]
	return strings.TrimPrefix(name, "CLOSE_REASON_"), isKnown
}
