# frozen_string_literal: true

# Looks at the terminal of a Wheelhouse worker: exact bytes, acknowledged as they are taken.
require 'wheelhouse_observer/connection'
require 'wheelhouse_observer/control_bind'
require 'wheelhouse_observer/presentation'
require 'wheelhouse_observer/state_folder'
require 'wheelhouse_observer/workers'
