# frozen_string_literal: true

require 'wheelhouse/authority/v1/authority_services_pb'
require_relative 'call_stream'

module WheelhouseObserver
  # The operator's presence: everything they ask hangs on it and ends with it.
  #
  # It does not renew the certificate: a look that outlives it is closed as CONTROL_UNBOUND.
  class ControlBind
    BINDING_S = 10
    private_constant :BINDING_S

    # Holds a Bind for as long as the block lasts. Raises a RefusedError or an UnreachableError.
    def self.hold(authority)
      client = authority.client(Wheelhouse::Authority::V1::AuthorityService)
      stream = CallStream.new(authority.plane) { |sent| client.bind(sent, return_op: true) }
      answer = Queue.new
      reading = Thread.new { read(stream, answer) }
      first = answer.pop
      raise first if first.is_a?(StandardError)

      yield
    ensure
      stream&.cancel
      reading&.join
    end

    # The first message says that the peer lives; the stream then lasts until it is cancelled.
    def self.read(stream, answer)
      stream.each(within_s: BINDING_S) { |message| answer << message }
    rescue RefusedError, UnreachableError => e
      answer << e
    end
    private_class_method :read
  end
end
