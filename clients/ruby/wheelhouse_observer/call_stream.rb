# frozen_string_literal: true

require 'grpc'
require_relative 'failures'

module WheelhouseObserver
  # One bidirectional call, with a queue for what is sent and a deadline for its first answer.
  class CallStream
    # How often to look whether the service has ended the call, in seconds.
    WATCH_S = 0.1
    private_constant :WATCH_S

    # The block makes the call: it is given an enumerator of what is sent, and returns the operation.
    def initialize(service)
      @service = service
      # At most one acknowledgement for each received frame, and those are bounded by the window.
      @sending = Queue.new
      @operation = yield Enumerator.new { |sink| send_all(sink) }
    end

    def push(message)
      @sending << message
    end

    # Each message, the next one read when the block returns. The first must come within `within_s`.
    # Raises a RefusedError or an UnreachableError when the call is over; leave it with `break`.
    def each(within_s:)
      overdue = Thread.new { sleep(within_s) && @operation.cancel }
      over = Thread.new { end_sending }
      Failures.named(@service) do
        @operation.execute.each do |message|
          overdue.kill
          yield message
        end
      end
      raise UnreachableError.new(@service, 'the stream just ended')
    ensure
      [overdue, over].compact.each(&:kill)
      cancel
    end

    # Frees what the transport still holds, and lets the sending thread end.
    def cancel
      @operation.cancel
      @sending << nil
    end

    private

    # grpc's read loop, once a call has ended well, waits for its writing thread, which waits for us.
    def end_sending
      sleep(WATCH_S) until @operation.status
      @sending << nil
    end

    def send_all(sink)
      while (message = @sending.pop)
        sink << message
      end
    end
  end
end
