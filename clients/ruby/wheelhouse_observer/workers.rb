# frozen_string_literal: true

require 'wheelhouse/authority/v1/authority_services_pb'
require_relative 'failures'

module WheelhouseObserver
  # All a look names, and where it is asked for. `endpoint` is empty when authority knows none.
  Designated = Struct.new(:worker_ref, :generation, :node, :endpoint, keyword_init: true)

  # Finds what a person calls by name.
  module Workers
    ANSWER_S = 10
    private_constant :ANSWER_S

    # The worker as it stands now. Raises a RefusedError or an UnreachableError. A name that nobody
    # has is passed on as it is, so that it is the services that say no.
    def self.designate(authority, name)
      client = authority.client(Wheelhouse::Authority::V1::AuthorityService)
      request = Wheelhouse::Authority::V1::ListWorkersRequest.new
      listed = Failures.named(authority.plane) do
        client.list_workers(request, deadline: Time.now + ANSWER_S)
      end
      worker = listed.workers.find { |one| [one.name, one.worker_ref].include?(name) }
      return Designated.new(worker_ref: name, generation: 1, node: 'local', endpoint: '') unless worker

      Designated.new(
        worker_ref: worker.worker_ref,
        generation: worker.worker_generation,
        node: worker.data_node.empty? ? 'local' : worker.data_node,
        endpoint: worker.data_endpoint
      )
    end
  end
end
