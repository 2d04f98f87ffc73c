# frozen_string_literal: true

require 'wheelhouse/data/v1/data_services_pb'
require_relative 'ack_ledger'
require_relative 'call_stream'

module WheelhouseObserver
  # The look begins: nothing before byte position `out_seq` is shown.
  Opened = Struct.new(:out_seq, :rows, :cols)
  # The next bytes, exactly as the program wrote them, from byte position `seq` on.
  Output = Struct.new(:seq, :payload)
  # The terminal has another size from byte position `out_seq` on.
  Resized = Struct.new(:out_seq, :rows, :cols)
  # The service said why, with positions. At most one of the exits is set.
  Closed = Struct.new(:reason, :acked_seq, :sent_seq, :produced_seq, :exit_code, :exit_signal)
  # The transport broke before a reason came: every byte before `taken_seq` is here, and no other.
  Lost = Struct.new(:taken_seq, :why)

  # An operator's look at a worker's terminal.
  class Presentation
    OPENING_S = 15
    # A stream may be closed before it began; where the reason is also a refusal's, that is raised.
    REFUSAL_BY = {
      CLOSE_REASON_WORKER_CLOSED: 'WORKER_CLOSED',
      CLOSE_REASON_GENERATION_ADVANCED: 'WORKER_GENERATION_ADVANCED',
      CLOSE_REASON_CONTROL_UNBOUND: 'CONTROL_CHANNEL_NOT_BOUND',
      CLOSE_REASON_AUTHORITY_UNREACHABLE: 'AUTHORITY_UNREACHABLE',
      CLOSE_REASON_DRAINING: 'SERVICE_DRAINING'
    }.freeze
    private_constant :OPENING_S, :REFUSAL_BY

    # `hold_limit_ms` is the service's own when nil.
    def initialize(data, worker_ref:, generation:, hold_limit_ms: nil, replace: false)
      @client = data.client(Wheelhouse::Data::V1::DataService)
      @terms = { worker_ref: worker_ref, expected_worker_generation: generation, replace: replace }
      @terms[:hold_limit_ms] = hold_limit_ms unless hold_limit_ms.nil?
    end

    # Next byte that the block has not taken; nil before the look begins.
    def taken_seq
      @ledger&.taken
    end

    # Looks until the end, which it returns: Closed or Lost. The block is given Opened, Output and
    # Resized; when it returns, the bytes are taken, and nothing is acknowledged before. Leave with
    # `break`: the program goes on. Raises a RefusedError or an UnreachableError.
    def look(&block)
      @end = @ledger = @program_end = nil
      @stream = CallStream.new('data') { |sent| @client.present(sent, return_op: true) }
      @stream.push(request(open: Wheelhouse::Data::V1::PresentOpen.new(@terms)))
      @stream.each(within_s: OPENING_S) do |response|
        pass_on(response, &block)
        break if @end
      end
      @end
    rescue RefusedError, UnreachableError => e
      raise if @ledger.nil?

      lose(e.message)
    end

    private

    def request(operation)
      Wheelhouse::Data::V1::PresentRequest.new(operation)
    end

    def pass_on(response, &block)
      return begin_look(response, &block) if @ledger.nil?

      case response.event
      when :output then output(response.output, &block)
      when :geometry then yield resized(response.geometry)
      when :end then ended(response.end)
      when :closed then @end = close(response.closed)
      end
      # Anything else is an event of a newer service.
    end

    def begin_look(response)
      if response.event == :closed && REFUSAL_BY.key?(response.closed.reason)
        raise RefusedError, REFUSAL_BY[response.closed.reason]
      end
      unless response.event == :opened
        raise UnreachableError.new('data', "the stream began with #{response.event}")
      end

      opened = response.opened
      @ledger = AckLedger.new(opened.out_seq, opened.window_bytes)
      yield Opened.new(opened.out_seq, opened.geometry.rows, opened.geometry.cols)
    end

    def output(frame)
      unless @ledger.receive?(frame.seq, frame.payload.bytesize)
        return lose("a frame at #{frame.seq} where #{@ledger.received} was due")
      end

      yield Output.new(frame.seq, frame.payload)
      @ledger.take
      acknowledge if @ledger.due?(frame.payload.bytesize)
    end

    def resized(changed)
      Resized.new(changed.out_seq, changed.geometry.rows, changed.geometry.cols)
    end

    def ended(program_end)
      @program_end = program_end
      acknowledge
    end

    def acknowledge
      next_seq = @ledger.acknowledge
      @stream.push(request(ack: Wheelhouse::Data::V1::OutputAck.new(next_seq: next_seq))) if next_seq
    end

    def close(closed)
      # A symbol for a reason that these stubs know, a number for one that they do not.
      reason = closed.reason
      return lose("it closed for a reason unknown here (#{reason})") unless reason.is_a?(Symbol)

      # What was acknowledged may still have been on its way when the service closed.
      acked = [closed.acked_seq, @ledger.acked].max
      name = reason.to_s.delete_prefix('CLOSE_REASON_')
      Closed.new(name, acked, closed.sent_seq, closed.produced_seq, *exit_of(closed))
    end

    # Over without a reason. After End every byte is here all the same, and the program's end is known.
    def lose(why)
      taken = @ledger.taken
      @end =
        if @program_end&.out_seq == taken
          Closed.new('ENDED', taken, taken, taken, *exit_of(@program_end))
        else
          Lost.new(taken, why)
        end
    end

    def exit_of(message)
      how = message.exit&.how
      [how == :code ? message.exit.code : nil, how == :signal ? message.exit.signal : nil]
    end
  end
end
