"""What one reader has received, taken and acknowledged, in byte positions that only grow."""
from __future__ import annotations

# A taken frame shorter than this is acknowledged at once: the terminal is not flooding, and the
# sender's positions stay exact without a timer.
_EAGER_BYTES = 16 * 1024


class AckLedger:
    """Invariant: acked <= taken <= received."""

    def __init__(self, out_seq: int, window_bytes: int) -> None:
        self.received = self.taken = self.acked = out_seq
        # A quarter of the window: the sender never waits for an acknowledgement that is due.
        self._step = -(-window_bytes // 4)

    def receive(self, seq: int, size: int) -> bool:
        """False for a gap or a repeat: bytes after it could not be told from the real ones."""
        if seq != self.received:
            return False
        self.received += size
        return True

    def take(self) -> None:
        """The consumer has everything that was received."""
        self.taken = self.received

    def is_due(self, last_size: int) -> bool:
        """Whether the sender should be told now, the frame taken last having this many bytes."""
        unacked = self.taken - self.acked
        return unacked >= self._step or (unacked > 0 and last_size < _EAGER_BYTES)
