package check

import (
	"bytes"
	"fmt"
	"slices"
	"time"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/kv"
)

// realtime checks strict serializability over all keys at once, which the revisions in etcd's answers make cheap: of
// two operations of which one ended before the other began, the later has no smaller revision (a greater one, if it
// wrote), and a read shows exactly the state at the revision that it reports.
//
// A change of the configuration has a place in that order, too (primary order): it is an operation that begins when a leader
// logs its entry, and ends when the first member applies it. Writes that were acknowledged before its begin have smaller
// revisions, and writes that clients request after its end have greater ones.
type realtime struct {
	ops    []timed
	logged map[consensus.Position]time.Duration // configuration entries, when a leader logged them
}

type timed struct {
	begin, end time.Duration
	revision   kv.Revision
	write      bool
	what       string
}

// Wrote records an acknowledged write; changed is false for a write that found nothing to change.
func (s *Suite) Wrote(begin, end time.Duration, revision kv.Revision, key string, changed bool) {
	s.realtime.ops = append(s.realtime.ops, timed{begin, end, revision, changed, "write of " + key})
}

// Read records an answered read of one key at the store's revision; linearizable reads also count in real-time order.
func (s *Suite) Read(begin, end time.Duration, revision kv.Revision, key string, got *kv.KeyValue, linearizable bool) {
	if linearizable {
		s.realtime.ops = append(s.realtime.ops, timed{begin, end, revision, false, "read of " + key})
	}
	if revision > s.machine.model.Revision {
		s.report("real-time-order", "a read of %q reports revision %d, the newest is %d", key, revision,
			s.machine.model.Revision)
		return
	}
	want, exists := s.machine.model.At(key, revision)
	switch {
	case !exists && got == nil:
	case !exists || got == nil || got.ModRevision != want.ModRevision || !bytes.Equal(got.Value, want.Value) ||
		got.Version != want.Version || got.Lease != want.Lease || got.CreateRevision != want.CreateRevision:
		s.report("real-time-order", "a read of %q at revision %d shows %+v, the log says %+v (exists: %v)",
			key, revision, got, want, exists)
	}
}

// changeLogged is called with each configuration entry that a member logs: the first such member is the leader that proposes
// it.
func (s *Suite) changeLogged(e *consensus.Entry) {
	r := &s.realtime
	if r.logged == nil {
		r.logged = map[consensus.Position]time.Duration{}
	}
	if _, known := r.logged[e.Position()]; !known {
		r.logged[e.Position()] = s.Now()
	}
}

// changeCommitted is called with each entry that is the first at its index to be applied anywhere, once its effect is known.
func (s *Suite) changeCommitted(e *consensus.Entry) {
	if begin, ok := s.realtime.logged[e.Position()]; ok && e.Kind == consensus.EntryConfig {
		s.realtime.ops = append(s.realtime.ops, timed{begin, s.Now(), s.machine.model.Revision, false,
			fmt.Sprintf("change %v of the configuration", e.Position())})
	}
}

func (r *realtime) finish(s *Suite) {
	byEnd := slices.Clone(r.ops)
	slices.SortStableFunc(byEnd, func(a, b timed) int { return int(a.end - b.end) })
	slices.SortStableFunc(r.ops, func(a, b timed) int { return int(a.begin - b.begin) })
	var top timed // the largest revision among the operations that ended before
	ended := 0
	for i := range r.ops {
		op := &r.ops[i]
		for ended < len(byEnd) && byEnd[ended].end < op.begin {
			if byEnd[ended].revision > top.revision {
				top = byEnd[ended]
			}
			ended++
		}
		if op.revision < top.revision || (op.write && op.revision == top.revision) {
			s.report("real-time-order", "the %s began at %v and got revision %d, after the %s had ended at %v with %d",
				op.what, op.begin, op.revision, top.what, top.end, top.revision)
			return
		}
	}
}
