package observer

// eagerBytes: a taken frame shorter than this is acknowledged at once. The terminal is not flooding,
// and the sender's positions stay exact without a timer.
const eagerBytes = 16 * 1024

// ackLedger is what one reader has received, taken and acknowledged, in byte positions that only grow.
// Invariant: acked <= taken <= received.
type ackLedger struct {
	received, taken, acked uint64
	// step is a quarter of the window: the sender never waits for an acknowledgement that is due.
	step uint64
}

func newAckLedger(outSeq uint64, windowBytes uint32) ackLedger {
	return ackLedger{outSeq, outSeq, outSeq, (uint64(windowBytes) + 3) / 4}
}

// receive is false for a gap or a repeat: bytes after it could not be told from the real ones.
func (l *ackLedger) receive(seq uint64, size int) bool {
	if seq != l.received {
		return false
	}
	l.received += uint64(size)
	return true
}

// isDue says whether the sender should be told now, the frame taken last having this many bytes.
func (l *ackLedger) isDue(lastSize int) bool {
	unacked := l.taken - l.acked
	return unacked >= l.step || (unacked > 0 && lastSize < eagerBytes)
}
