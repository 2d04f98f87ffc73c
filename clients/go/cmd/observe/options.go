package main

import (
	"errors"
	"flag"
	"fmt"
	"math"
	"os"
	"strings"

	"wheelhouse.internal/client/observer"
)

const holdLimitSecondsMax = 30

// options are what the command line says.
type options struct {
	worker     string
	state      observer.StateFolder
	role, name string
	generation uint64
	// holdLimit is in seconds; negative when it was not given.
	holdLimit  float64
	replace    bool
	noBind     bool
	transcript string
}

func parse(arguments []string) (options, error) {
	var parsed options
	var state, as string
	flags := flag.NewFlagSet("observe NAME", flag.ContinueOnError)
	flags.SetOutput(os.Stderr)
	flags.StringVar(&state, "state", "", "the state folder of the deployment")
	flags.StringVar(&as, "as", "human-control/"+observer.OperatorName(), "`ROLE/NAME`, an identity of the folder")
	flags.Uint64Var(&parsed.generation, "generation", 0, "only this generation of the worker")
	flags.Float64Var(&parsed.holdLimit, "hold-limit", -1, "how long this reader may hold the terminal, in `seconds`: 0 to 30")
	flags.BoolVar(&parsed.replace, "replace", false, "take the place of an older look")
	flags.BoolVar(&parsed.noBind, "no-bind", false, "rely on a Bind that another process holds with this certificate")
	flags.StringVar(&parsed.transcript, "transcript", "", "`FILE` for JSON lines; - takes the place of the bytes")
	if err := parseAround(flags, arguments, &parsed.worker); err != nil {
		return options{}, err
	}
	if parsed.holdLimit > holdLimitSecondsMax {
		return options{}, fmt.Errorf("--hold-limit is 0 to %d", holdLimitSecondsMax)
	}
	role, name, isPair := strings.Cut(as, "/")
	if !isPair {
		return options{}, errors.New("--as is ROLE/NAME")
	}
	parsed.role, parsed.name, parsed.state = role, name, observer.StateFolder(state)
	if state == "" {
		folder, err := observer.DefaultStateFolder()
		parsed.state = folder
		return parsed, err
	}
	return parsed, nil
}

// parseAround lets flags stand before and after the name, where package flag stops at it.
func parseAround(flags *flag.FlagSet, arguments []string, name *string) error {
	if err := flags.Parse(arguments); err != nil {
		return err
	}
	if flags.NArg() == 0 {
		return errors.New("NAME is missing")
	}
	*name = flags.Arg(0)
	if err := flags.Parse(flags.Args()[1:]); err != nil {
		return err
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("%s is one argument too many", flags.Arg(0))
	}
	return nil
}

func (o options) terms(worker observer.Designated) observer.Terms {
	terms := observer.Terms{WorkerRef: worker.WorkerRef, Generation: worker.Generation, Replace: o.replace}
	if o.generation != 0 {
		terms.Generation = o.generation
	}
	if o.holdLimit >= 0 {
		ms := uint32(math.Round(o.holdLimit * 1000))
		terms.HoldLimitMs = &ms
	}
	return terms
}
