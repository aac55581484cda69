package sim

import (
	"io"
	"time"

	"github.com/quorate/quorate/internal/sim/check"
	"github.com/quorate/quorate/internal/sim/plan"
	"github.com/quorate/quorate/internal/sim/tally"
)

// LoadReads is a load of linearizable reads, with few writes on few keys between them.
const LoadReads = plan.LoadReads

// Options say what to run. Seed decides everything that is zero.
type Options struct {
	Seed     uint64
	Members  int
	Duration time.Duration // of the first phase
	Nemesis  string        // only these, separated by commas; "none" for none; empty: drawn
	Protocol string        // all membership changes by this one; empty: drawn
	Load     string        // LoadReads; empty: drawn
	Break    string        // a negative control, see breaks.All
	Engine   string        // of the stores: stores.Memory, which is the default, or stores.Pebble
	Trace    io.Writer
	Actions  io.Writer // what the cores do, for package model/trace
}

// Report is what a run gave.
type Report struct {
	Seed       uint64
	Plan       string
	Simulated  time.Duration
	Counts     tally.Counts
	Violations []check.Violation
	TraceLines uint64
	TraceSum   uint64
}
