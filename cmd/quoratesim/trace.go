package main

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/quorate/quorate/internal/model/trace"
)

// writeActions runs a seed and writes what its cores do.
func (c *campaign) writeActions(name string) (violated bool, err error) {
	file, err := os.Create(name)
	if err != nil {
		return false, err
	}
	c.options.Trace, c.options.Actions = nil, file
	violated, err = c.run()
	return violated, errors.Join(err, file.Close())
}

// checkTrace reports whether the specification refuses a step of the trace in a file.
func checkTrace(args []string, out io.Writer) (refused bool, err error) {
	if len(args) != 1 {
		return false, errors.New("check-trace needs the name of one file, which replay --actions wrote")
	}
	file, err := os.Open(args[0])
	if err != nil {
		return false, err
	}
	defer file.Close()
	steps, err := trace.Check(file)
	switch {
	case errors.Is(err, trace.ErrUnmapped):
		fmt.Fprintf(out, "%d steps are allowed; then: %v\n", steps, err)
	case err != nil:
		fmt.Fprintf(out, "%d steps are allowed; REFUSED: %v\n", steps, err)
		return true, nil
	default:
		fmt.Fprintf(out, "%d steps, all allowed\n", steps)
	}
	return false, nil
}
