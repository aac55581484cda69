package check

import (
	"fmt"
	"time"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/sim/permits"
)

// Violation is a broken law.
type Violation struct {
	At       time.Duration // virtual time
	Property string
	Detail   string
}

func (v Violation) String() string {
	return fmt.Sprintf("%s at %v: %s", v.Property, v.At, v.Detail)
}

// maxViolations bounds the report of one run: most violations after the first one are its consequences.
const maxViolations = 8

// Suite is all checkers of one simulated cluster.
type Suite struct {
	Now        func() time.Duration
	Violations []Violation
	Duplicates uint64 // entries that repeated a proposal
	Fast       uint64 // proposals that the fast path decided
	Skipped    uint64 // entries whose exact revision had passed

	Acks     Acknowledgements
	Leases   Leases
	Bindings Bindings
	Jobs     Jobs
	Offers   Offers
	Soaks    Soaks
	SentOnce SentOnce
	Permits  permits.Laws

	CountBytes int64 // what a step of a quota's count looks at
	MostHeads  int   // heads of the audit that are kept of a member

	elections  elections
	logs       logs
	commits    commits
	durable    durable
	machine    machine
	realtime   realtime
	history    history
	watches    watches
	removals   removals
	fastPath   fastPath
	promises   promises
	recoveries recoveries
	chains     chains
	primary    primary
}

// NewSuite returns checkers for a cluster whose first members begin after base, with an empty store.
func NewSuite(now func() time.Duration, base consensus.SnapshotMeta) *Suite {
	s := &Suite{Now: now}
	s.elections.init()
	s.logs.init()
	s.durable.init()
	s.machine.init()
	s.Leases.init()
	s.fastPath.init()
	s.promises.init()
	s.recoveries.init()
	s.Bindings.init()
	s.removals.init(&base)
	s.Permits.Init(s.report)
	s.Jobs.voters = base.Config.Voters
	first := base.Position
	for range first.Index {
		s.logs.chosen = append(s.logs.chosen, first.Term)
		s.machine.outcomes = append(s.machine.outcomes, outcome{revision: 1})
		s.machine.revisions = append(s.machine.revisions, 1)
	}
	return s
}

func (s *Suite) report(property, format string, args ...any) {
	if len(s.Violations) < maxViolations {
		s.Violations = append(s.Violations, Violation{s.Now(), property, fmt.Sprintf(format, args...)})
	}
}

// Report adds a violation that the world itself found, such as a broken invariant or a cluster that does not converge.
func (s *Suite) Report(property, detail string) { s.report(property, "%s", detail) }

// Failed reports whether any law was broken.
func (s *Suite) Failed() bool { return len(s.Violations) > 0 }

// Model is the reference state after the longest prefix of the log that any member applied.
func (s *Suite) Model() *Model { return s.machine.model }

// Finish runs the checks that need the whole history, after the last operation.
func (s *Suite) Finish() {
	s.Acks.finish(s)
	s.realtime.finish(s)
	s.history.finish(s)
	s.watches.finish(s)
	s.fastPath.finish(s)
}

// Applied records that a member applied entries with results, in order.
func (s *Suite) Applied(member consensus.MemberID, entries []consensus.Entry, results []kv.Result) {
	for i := range entries {
		s.chosen(member, &entries[i])
		s.machine.applied(s, member, &entries[i], &results[i])
		if m := &s.machine; m.edited {
			s.Permits.Began(entries[i].Index, m.model.Revision, m.asked, m.model.users)
			m.edited = false
		}
		s.Jobs.applied(s, &entries[i], &results[i])
	}
	s.reached(member, entries)
}

// Executed tells that a member applied entries with results, in order, where the state machine is none that this package has a
// model of: only logs, configurations, and what the fast path promised are judged.
func (s *Suite) Executed(member consensus.MemberID, entries []consensus.Entry, results []kv.Result) {
	for i := range entries {
		first := len(s.logs.chosen)
		if s.chosen(member, &entries[i]); len(s.logs.chosen) == first {
			continue
		}
		s.machine.revisions = append(s.machine.revisions, results[i].Revision)
		if entries[i].Kind == consensus.EntryCommand && results[i].Err == nil {
			s.fastPath.executed(s, entries[i].Proposal, &results[i])
		}
	}
	s.reached(member, entries)
}

// chosen is told of every entry that a member applies.
func (s *Suite) chosen(member consensus.MemberID, e *consensus.Entry) {
	s.logs.committed(s, member, e)
	s.configCommitted(e)
}

// reached is told of what a member has applied.
func (s *Suite) reached(member consensus.MemberID, entries []consensus.Entry) {
	if n := len(entries); n > 0 {
		s.commits.acted(s, member, entries[n-1].Index)
		s.logs.of(member).reached(entries[n-1].Index)
		s.Permits.Reached(member, entries[n-1].Index)
	}
}
