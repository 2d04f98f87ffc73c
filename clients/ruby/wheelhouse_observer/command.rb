# frozen_string_literal: true

require 'optparse'
require_relative 'connection'
require_relative 'control_bind'
require_relative 'presentation'
require_relative 'state_folder'
require_relative 'transcript'
require_relative 'workers'

module WheelhouseObserver
  # `observe NAME`: prints the bytes of a worker's terminal until it ends.
  class Command
    EXIT_DONE = 0
    EXIT_USAGE = 2
    EXIT_REFUSED = 3
    EXIT_UNREACHABLE = 4
    HOLD_LIMIT_S = (0..30).freeze

    def initialize(arguments)
      @arguments = arguments
      @options = { as: "human-control/#{StateFolder.operator_name}" }
    end

    # Returns the exit code.
    def run
      parse
      Signal.trap('TERM') { Thread.main.raise(Interrupt) }
      with_transcript { observe }
    rescue OptionParser::ParseError, SystemCallError => e
      warn "observe: #{e.message}"
      EXIT_USAGE
    rescue Interrupt
      128 + Signal.list['INT']
    end

    private

    def observe
      folder = StateFolder.new(@options[:state] || StateFolder.default_path)
      @identity = folder.identity(*@options[:as].split('/', 2))
      @endpoints = folder.endpoints
      Connection.open(@endpoints.authority, 'authority', @identity) { |authority| present(authority) }
    rescue RefusedError => e
      @transcript.write('refused', reason: e.reason, facts: e.facts)
      warn "refused: #{e.message}"
      EXIT_REFUSED
    rescue UnreachableError => e
      @transcript.write('unreachable', service: e.service)
      warn "unreachable: #{e.message}"
      EXIT_UNREACHABLE
    end

    def present(authority)
      return watch(authority) if @options[:no_bind]

      ControlBind.hold(authority) do
        @transcript.write('bound')
        watch(authority)
      end
    end

    def watch(authority)
      worker = Workers.designate(authority, @name)
      endpoint = worker.endpoint.empty? ? @endpoints.data[worker.node] : worker.endpoint
      raise RefusedError.new('OWNER_UNREACHABLE', { 'node' => worker.node }) if endpoint.nil?

      Connection.open(endpoint, 'data', @identity) { |data| report(look(data, worker)) }
    end

    # Nil when the reader left: the program goes on.
    def look(data, worker)
      presentation = Presentation.new(
        data,
        worker_ref: worker.worker_ref,
        generation: @options[:generation] || worker.generation,
        hold_limit_ms: @options[:hold_limit_ms],
        replace: @options.fetch(:replace, false)
      )
      presentation.look { |event| show(event) }
    rescue Interrupt, Errno::EPIPE
      raise if presentation&.taken_seq.nil?

      @transcript.closed('DETACHED', acked_seq: presentation.taken_seq.to_s)
      nil
    end

    def show(event)
      case event
      when Opened
        @transcript.write('opened', out_seq: event.out_seq.to_s, rows: event.rows, cols: event.cols)
      when Resized
        @transcript.write('resized', out_seq: event.out_seq.to_s, rows: event.rows, cols: event.cols)
      when Output
        print_all(event.payload) unless @options[:transcript] == '-'
        @transcript.take(event.payload)
      end
    end

    # Returns when the system has every byte: only then may they be acknowledged.
    def print_all(payload)
      payload = payload.byteslice($stdout.syswrite(payload)..) until payload.empty?
    end

    def report(finish)
      return EXIT_DONE if finish.nil?

      @transcript.ended(finish)
      if finish.is_a?(Lost)
        warn "closed: transport-lost acked=#{finish.taken_seq} (#{finish.why})"
        return EXIT_UNREACHABLE
      end
      positions = "acked=#{finish.acked_seq} sent=#{finish.sent_seq} produced=#{finish.produced_seq}"
      warn "closed: #{finish.reason.downcase.tr('_', '-')} #{positions}"
      finish.reason == 'ENDED' ? EXIT_DONE : EXIT_REFUSED
    end

    def with_transcript
      case @options[:transcript]
      when nil then stream = nil
      when '-' then stream = $stdout
      else stream = owned = File.open(@options[:transcript], 'w')
      end
      @transcript = Transcript.new(stream)
      yield
    ensure
      owned&.close
    end

    def parse
      rest = parser.parse(@arguments)
      raise OptionParser::MissingArgument, 'NAME' if rest.empty?
      raise OptionParser::NeedlessArgument, rest[1] if rest.length > 1

      @name = rest.first
    end

    def parser
      OptionParser.new('usage: observe NAME [options]') do |to|
        to.on('--state DIR', 'the state folder of the deployment') { |v| @options[:state] = v }
        to.on('--as ROLE/NAME', %r{\A[^/]+/[^/]+\z}, 'an identity of the folder') { |v| @options[:as] = v }
        to.on('--generation N', Integer, 'only this generation of the worker') { |v| @options[:generation] = v }
        to.on('--hold-limit SECONDS', Float, 'how long this reader may hold the terminal: 0 to 30') { |v| hold(v) }
        to.on('--replace', 'take the place of an older look') { @options[:replace] = true }
        to.on('--no-bind', 'rely on a Bind that another process holds') { @options[:no_bind] = true }
        to.on('--transcript FILE|-', 'JSON lines; - takes the place of the bytes') { |v| @options[:transcript] = v }
      end
    end

    def hold(seconds)
      raise OptionParser::InvalidArgument, 'it is 0 to 30' unless HOLD_LIMIT_S.cover?(seconds)

      @options[:hold_limit_ms] = (seconds * 1000).round
    end
  end
end
