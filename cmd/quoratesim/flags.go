package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"strings"
)

// newFlags returns the flags of a command, which prints its own help and errors.
func newFlags(command string) *flag.FlagSet {
	flags := flag.NewFlagSet("quoratesim "+command, flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	return flags
}

// cutVerb splits the verb of a command from the flags that follow it. The verb is empty if there is none.
func cutVerb(args []string) (verb string, rest []string) {
	if len(args) > 0 && !strings.HasPrefix(args[0], "-") {
		return args[0], args[1:]
	}
	return "", args
}

// parseFlags reads the flags of a command that takes no arguments. Asked for help, it prints the usage and the flags, and
// returns flag.ErrHelp.
func parseFlags(flags *flag.FlagSet, args []string, usage string, out io.Writer) error {
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			fmt.Fprint(out, usage)
			flags.SetOutput(out)
			flags.PrintDefaults()
		}
		return err
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	return nil
}

// reach says how far a search came.
func reach(complete bool) string {
	if complete {
		return "complete at"
	}
	return "stopped in"
}
