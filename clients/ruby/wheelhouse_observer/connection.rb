# frozen_string_literal: true

require 'grpc'

module WheelhouseObserver
  # One plane as one identity: TLS both ways, and only that plane's certificate will do.
  class Connection
    OPTIONS = {
      # A retried act is a second act.
      'grpc.enable_retries' => 0,
      'grpc.keepalive_time_ms' => 10_000,
      'grpc.keepalive_timeout_ms' => 5_000,
      'grpc.keepalive_permit_without_calls' => 1,
      # A Bind is silent for days; without this, gRPC stops asking after two questions.
      'grpc.http2.max_pings_without_data' => 0,
      'grpc.max_receive_message_length' => 4 * 1024 * 1024,
      # A connection of its own, so that closing the channel closes it.
      'grpc.use_local_subchannel_pool' => 1
    }.freeze
    private_constant :OPTIONS

    attr_reader :plane

    # Dials lazily: the first call makes the connection. `endpoint` is `host:port`.
    def self.open(endpoint, plane, identity)
      connection = new(endpoint, plane, identity)
      yield connection
    ensure
      connection&.close
    end

    def initialize(endpoint, plane, identity)
      @plane = plane
      credentials =
        GRPC::Core::ChannelCredentials.new(identity.root, identity.key, identity.certificate)
      name = { 'grpc.ssl_target_name_override' => "#{plane}.wheelhouse.internal" }
      @channel = GRPC::Core::Channel.new(endpoint, OPTIONS.merge(name), credentials)
    end

    # A client of a generated service on this channel.
    def client(service)
      service::Stub.new('unused', :unused, channel_override: @channel)
    end

    def close
      @channel.close
    end
  end
end
