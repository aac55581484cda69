package lab

import (
	"slices"
	"time"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/raft"
)

// stages follows the operator's change through its stages and makes faults strike there.
type stages struct {
	w        *world
	faults   []*Fault // by stage, still to strike
	timed    int      // by time, still to strike
	reached  [stageCount]bool
	change   consensus.ConfigID
	proposer memberID
	target   []memberID
}

// plan takes the faults of a run, whose clock begins now.
func (s *stages) plan(faults []Fault) {
	for i := range faults {
		f := &faults[i]
		switch {
		case f.staged:
			s.faults = append(s.faults, f)
		case f.at > 0:
			s.timed++
			s.w.when(s.w.origin+f.at, func() {
				s.timed--
				s.w.happen(f)
			})
		default:
			s.w.happen(f)
		}
	}
}

// lastFault returns when the last fault with a time is over.
func lastFault(faults []Fault) time.Duration {
	var last time.Duration
	for _, f := range faults {
		last = max(last, f.at+f.again)
	}
	return last
}

// pass checks a step before its output is performed; it reports whether the member lives on.
func (s *stages) pass(m *member, out *raft.Output) bool {
	if len(s.target) == 0 {
		return true
	}
	for _, e := range out.Events {
		switch e := e.(type) {
		case raft.ConfigProposed:
			if s.change == (consensus.ConfigID{}) {
				s.change, s.proposer = e.ID, m.id
				if s.crashesLeader(0) {
					m.disk.flush(out)
				}
				s.reach(0)
				if s.waitsFor(1) {
					s.w.net.onlyOne = e.ID.Index
				}
			}
		case raft.ConfigCommitted:
			if e.ID == s.change {
				s.w.operator.decided(m, e.ID)
				s.reach(2)
			}
		}
	}
	if in := &m.status; s.reached[2] && !s.reached[3] && m.running() && m.id != s.proposer && in.Role != raft.Leader &&
		!in.Config.IsJoint() && slices.Equal(in.Config.Voters, s.target) &&
		(in.Protocol != consensus.ProtocolSingle || in.ConfigCommitted) {
		s.reach(3)
	}
	return m.running()
}

// durable checks a disk that has just synced; it reports whether the member lives on.
func (s *stages) durable(m *member) bool {
	n := &s.w.net
	if n.onlyOne > 0 && m.id == n.onlyMember && slices.ContainsFunc(m.disk.entries, func(e entry) bool {
		return e.Index == n.onlyOne && e.Term == s.change.Term
	}) {
		s.reach(1)
		n.onlyOne = 0
	}
	return m.running()
}

// waitsFor reports whether a fault waits for a stage.
func (s *stages) waitsFor(stage int) bool {
	return slices.ContainsFunc(s.faults, func(f *Fault) bool { return f.stage == stage })
}

func (s *stages) crashesLeader(stage int) bool {
	return slices.ContainsFunc(s.faults, func(f *Fault) bool {
		return f.stage == stage && (f.kind == "leader-crash" || f.kind == "leader-restart")
	})
}

func (s *stages) reach(stage int) {
	if s.reached[stage] {
		return
	}
	s.reached[stage] = true
	for _, f := range s.faults {
		if f.stage == stage {
			s.w.happen(f)
		}
	}
	s.faults = slices.DeleteFunc(s.faults, func(f *Fault) bool { return f.stage == stage })
}
