# frozen_string_literal: true

require 'digest'
require 'json'

module WheelhouseObserver
  # What a look was, as one JSON object a line, the same from a client in any language.
  #
  # Written as it happens, with totals in place of chunks. Positions are strings: they are 64 bits.
  class Transcript
    # `stream` may be nil: then nothing is written.
    def initialize(stream)
      @stream = stream
      @hash = Digest::SHA256.new
      @bytes = 0
    end

    def write(event, **fields)
      return if @stream.nil?

      @stream.write("#{JSON.generate({ event: event, **fields })}\n")
      @stream.flush
    end

    def take(payload)
      @hash << payload
      @bytes += payload.bytesize
    end

    def ended(finish)
      return closed('TRANSPORT_LOST', acked_seq: finish.taken_seq.to_s) if finish.is_a?(Lost)

      closed(
        finish.reason,
        acked_seq: finish.acked_seq.to_s,
        sent_seq: finish.sent_seq.to_s,
        produced_seq: finish.produced_seq.to_s,
        **{ exit_code: finish.exit_code, exit_signal: finish.exit_signal }.compact
      )
    end

    def closed(reason, **positions)
      write('output', bytes: @bytes.to_s, sha256: @hash.hexdigest)
      write('closed', reason: reason, **positions)
    end
  end
end
