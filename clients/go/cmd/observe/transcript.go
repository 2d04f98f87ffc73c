package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"hash"
	"io"
	"strconv"

	"wheelhouse.internal/client/observer"
)

// transcript is what a look was, as one JSON object a line, the same from a client in any language.
//
// Written as it happens, with totals in place of chunks. Positions are strings: they are 64 bits.
type transcript struct {
	// to may be nil: then nothing is written.
	to   io.Writer
	size uint64
	hash hash.Hash
}

type bound struct {
	Event string `json:"event"`
}

type unreachable struct {
	Event   string `json:"event"`
	Service string `json:"service"`
}

type refused struct {
	Event  string            `json:"event"`
	Reason string            `json:"reason"`
	Facts  map[string]string `json:"facts"`
}

// sized is of the events "opened" and "resized".
type sized struct {
	Event  string `json:"event"`
	OutSeq string `json:"out_seq"`
	Rows   uint32 `json:"rows"`
	Cols   uint32 `json:"cols"`
}

type output struct {
	Event  string `json:"event"`
	Bytes  string `json:"bytes"`
	Sha256 string `json:"sha256"`
}

type closed struct {
	Event       string  `json:"event"`
	Reason      string  `json:"reason"`
	AckedSeq    string  `json:"acked_seq"`
	SentSeq     string  `json:"sent_seq,omitempty"`
	ProducedSeq string  `json:"produced_seq,omitempty"`
	ExitCode    *uint32 `json:"exit_code,omitempty"`
	ExitSignal  *uint32 `json:"exit_signal,omitempty"`
}

func newTranscript(to io.Writer) *transcript {
	return &transcript{to: to, hash: sha256.New()}
}

// Write counts what was shown.
func (t *transcript) Write(payload []byte) (int, error) {
	t.size += uint64(len(payload))
	return t.hash.Write(payload)
}

func (t *transcript) note(event interface{}) {
	if t.to == nil {
		return
	}
	var line bytes.Buffer
	encoder := json.NewEncoder(&line)
	encoder.SetEscapeHTML(false)
	if encoder.Encode(event) == nil {
		_, _ = t.to.Write(line.Bytes())
	}
}

func (t *transcript) refused(err *observer.RefusedError) {
	facts := err.Facts
	if facts == nil {
		facts = map[string]string{}
	}
	t.note(refused{"refused", err.Reason, facts})
}

func (t *transcript) ended(end *observer.End) {
	event := closed{Reason: end.Reason, AckedSeq: decimal(end.AckedSeq)}
	if !end.IsLost() {
		event.SentSeq, event.ProducedSeq = decimal(end.SentSeq), decimal(end.ProducedSeq)
		event.ExitCode, event.ExitSignal = end.ExitCode, end.ExitSignal
	}
	t.closed(event)
}

func (t *transcript) closed(event closed) {
	t.note(output{"output", decimal(t.size), hex.EncodeToString(t.hash.Sum(nil))})
	event.Event = "closed"
	t.note(event)
}

func decimal(position uint64) string { return strconv.FormatUint(position, 10) }
