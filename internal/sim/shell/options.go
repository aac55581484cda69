package shell

import (
	"time"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/raft"
	"github.com/quorate/quorate/internal/logwriter"
	"github.com/quorate/quorate/internal/offers"
)

// Options say how a process runs.
type Options struct {
	Raft     raft.Options
	FastPath offers.Setting
	Delay    time.Duration // of commits, until more is proposed
	Most     int64         // ticks in one step
	Extend   time.Duration // what a new leader adds to every lease
	// RequestTimeout ends requests.
	RequestTimeout time.Duration
	Natives        Natives

	Mute      func() bool                      // time does not pass for the core
	Stepped   func()                           // is told of each step
	Observe   func(event raft.Event)           // is told of each event
	Configure func(inForce raft.ConfigInForce) // is told of the configuration in force
	Carry     func(t *Transfer)                // takes a snapshot to a member

	// Negative controls.
	Offers  offers.Faults
	Log     logwriter.Faults
	Early   time.Duration                                   // leases end so much too early
	Altered func(batch []consensus.Entry) []consensus.Entry // what is applied instead of a batch; nil: itself
}
