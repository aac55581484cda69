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

// Options say what to run. The seed decides all fields that are zero.
type Options struct {
	Seed     uint64
	Members  int
	Duration time.Duration // of the first phase
	Nemesis  string        // names of faults, separated by commas; "none" for none; empty: drawn
	Protocol string        // protocol of all membership changes; empty: drawn
	Load     string        // LoadReads; empty: drawn
	Break    string        // a negative control, see breaks.All
	Engine   string        // of the stores: stores.Memory, which is the default, or stores.Pebble
	Encrypts bool          // the disks of all machines are encrypted
	Trace    io.Writer
	Actions  io.Writer // trace of the cores' actions, for package model/trace
}

// Report is the result of a run.
type Report struct {
	Seed       uint64
	Plan       string
	Simulated  time.Duration
	Counts     tally.Counts
	Violations []check.Violation
	TraceLines uint64
	TraceSum   uint64
}
