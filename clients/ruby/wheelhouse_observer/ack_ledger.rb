# frozen_string_literal: true

module WheelhouseObserver
  # What one reader has received, taken and acknowledged, in byte positions that only grow.
  # Invariant: acked <= taken <= received.
  class AckLedger
    # A taken frame shorter than this is acknowledged at once: the terminal is not flooding, and the
    # sender's positions stay exact without a timer.
    EAGER_BYTES = 16 * 1024
    private_constant :EAGER_BYTES

    attr_reader :received, :taken, :acked

    def initialize(out_seq, window_bytes)
      @received = @taken = @acked = out_seq
      # A quarter of the window: the sender never waits for an acknowledgement that is due.
      @step = (window_bytes / 4.0).ceil
    end

    # False for a gap or a repeat: bytes after it could not be told from the real ones.
    def receive?(seq, size)
      return false unless seq == @received

      @received += size
      true
    end

    # The consumer has everything that was received.
    def take
      @taken = @received
    end

    # Whether the sender should be told now, the frame taken last having this many bytes.
    def due?(last_size)
      unacked = @taken - @acked
      unacked >= @step || (unacked.positive? && last_size < EAGER_BYTES)
    end

    # The position to tell; nil when the sender knows it already.
    def acknowledge
      return nil unless @taken > @acked

      @acked = @taken
    end
  end
end
