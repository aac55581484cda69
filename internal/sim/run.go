package sim

import (
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/sim/actions"
	"github.com/quorate/quorate/internal/sim/breaks"
	"github.com/quorate/quorate/internal/sim/check"
	"github.com/quorate/quorate/internal/sim/diary"
	"github.com/quorate/quorate/internal/sim/joins"
	"github.com/quorate/quorate/internal/sim/kernel"
	"github.com/quorate/quorate/internal/sim/plan"
	"github.com/quorate/quorate/internal/sim/routines"
	"github.com/quorate/quorate/internal/sim/stores"
	"github.com/quorate/quorate/internal/sim/tally"
	"github.com/quorate/quorate/internal/sim/workload"
)

var discard = slog.New(slog.DiscardHandler)

// The random streams of a seed. A host has streamHosts, streamClocks and streamDates, plus its slot.
const (
	streamPlan = iota + 1
	streamWorld
	streamNetwork
	streamLoad
	streamNatives
	streamIdentity
	streamPlanIdentity
	streamJobs
	streamOperators
	streamUsers
	streamStrangers
	streamPlaces
	streamDowngrades
	streamBackups
	streamBuckets
	streamRetention
	streamNames
	streamHosts  = 100
	streamClocks = 200
	streamDates  = 10_000
)

// run is the state that all parts of one run share: time, random streams, plan, checkers and traces.
type run struct {
	kernel.Schedule
	plan    *plan.Plan
	broken  breaks.Set
	rng     *rand.Rand
	spoil   *rand.Rand // of the faults of identity
	chance  *rand.Rand // of jobs
	users   *rand.Rand // of users
	lies    *rand.Rand // of strangers
	places  *rand.Rand // of addresses
	trace   *diary.Diary
	actions *actions.Writer // nil if the actions are not written
	suite   *check.Suite
	stores  *stores.Stores
	buckets *buckets
	counts  tally.Counts
	shipped bool  // the backup has done its work: members rest
	current *host // the host whose code runs: for panics

	mostEvents uint64 // a run with more events ends with a violation

	routines routines.Set // code that blocks in a real member
	joins    joins.Laws

	calm     bool          // the first phase is over
	calmed   time.Duration // when that was
	arriving bool          // but the world still waits for processes that join
	refusing bool          // most disks are lost: nothing may serve
	load     *workload.Load
	// altered, a negative control, returns the entries that are applied in place of a batch; nil: the batch.
	altered func([]consensus.Entry) []consensus.Entry
}

func (r *run) struck(name, detail string) {
	r.counts.Faults[name]++
	r.trace.Note(r.Now(), -1, diary.Nemesis, r.counts.Faults[name], 0, 0, func() string { return name + " " + detail })
}
