# frozen_string_literal: true

require 'grpc'
require 'wheelhouse/refusal/v1/status_pb'

module WheelhouseObserver
  # The service ruled no. `reason` is in UPPER_SNAKE_CASE; `facts` is what the refused may know.
  class RefusedError < StandardError
    attr_reader :reason, :facts

    def initialize(reason, facts = {})
      @reason = reason
      @facts = facts.to_h.sort.to_h
      told = @facts.map { |key, value| "#{key}=#{value}" }.join(', ')
      name = reason.downcase.tr('_', '-')
      super(told.empty? ? name : "#{name} (#{told})")
    end
  end

  # No ruling came. What was asked may have happened. `service` is the plane that was asked.
  class UnreachableError < StandardError
    attr_reader :service

    def initialize(service, why)
      @service = service
      super("#{service} gave no answer: #{why}")
    end
  end

  # Tells the two apart: a status without a refusal's name is never read as one.
  module Failures
    ERROR_INFO = 'type.googleapis.com/google.rpc.ErrorInfo'
    private_constant :ERROR_INFO

    # Runs the block; a GRPC::BadStatus becomes a RefusedError or an UnreachableError.
    def self.named(service)
      yield
    rescue GRPC::BadStatus => e
      raise refusal_in(e.metadata['grpc-status-details-bin']) ||
            UnreachableError.new(service, "#{e.class.name.split('::').last}: #{e.details}")
    end

    def self.refusal_in(raw)
      return nil if raw.nil?

      status = Wheelhouse::Refusal::V1::Status.decode(raw)
      detail = status.details.find { |one| one.type_url == ERROR_INFO }
      info = detail && Wheelhouse::Refusal::V1::ErrorInfo.decode(detail.value)
      RefusedError.new(info.reason, info.metadata) if info&.domain == 'wheelhouse'
    rescue Google::Protobuf::ParseError
      nil
    end
    private_class_method :refusal_in
  end
end
