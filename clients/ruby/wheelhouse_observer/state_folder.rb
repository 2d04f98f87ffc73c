# frozen_string_literal: true

require 'etc'
require 'json'

module WheelhouseObserver
  # A certificate with its key, and the root that services are checked against. All PEM.
  Identity = Struct.new(:certificate, :key, :root, keyword_init: true)

  # `host:port` of authority, and of data by node.
  Endpoints = Struct.new(:authority, :data, keyword_init: true)

  # The state folder of a deployment: who may call, and where the services are. Never written here.
  class StateFolder
    # Where the command keeps it: WHEELHOUSE_STATE, else below XDG_STATE_HOME.
    def self.default_path
      named = ENV.fetch('WHEELHOUSE_STATE', '')
      return named unless named.empty?

      base = ENV.fetch('XDG_STATE_HOME', '')
      base = File.join(Dir.home, '.local', 'state') if base.empty?
      File.join(base, 'wheelhouse')
    end

    # The current user as a name that an identity may carry.
    def self.operator_name
      name = Etc.getpwuid.name
      name = name.downcase.gsub(/[^a-z0-9._-]/, '-').sub(/\A[^a-z0-9]+/, '')[0, 63]
      name.empty? ? 'operator' : name
    end

    def initialize(path)
      @path = path
    end

    # Raises a SystemCallError when the folder has no such identity.
    def identity(role, name)
      stem = File.join(@path, 'identities', role, name)
      Identity.new(
        certificate: File.read("#{stem}.crt"),
        key: File.read("#{stem}.key"),
        root: File.read(File.join(@path, 'ca', 'root.crt'))
      )
    end

    # Raises a SystemCallError when no services were started from the folder.
    def endpoints
      noted = JSON.parse(File.read(File.join(@path, 'endpoints.json')))
      data = noted.fetch('data')
      data = { 'local' => data } if data.is_a?(String)
      Endpoints.new(authority: noted.fetch('authority'), data: data)
    end
  end
end
