package rpc

import (
	"context"

	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/rpc/access"
	"github.com/quorate/quorate/internal/rpc/timings"
	"github.com/quorate/quorate/internal/rpc/wire"
)

// shared is what all of etcd's services have: the member that they serve and the bounds on doing so.
type shared struct {
	options Options
	self    uint64
	cluster uint64
	stats   counters
	timings *timings.Timings
	quota   quota
	bounds  bounds
	access  *access.Control
	own     ownWrites
	grants  grants
	adding  chan struct{} // holds one token while a change adds to users and roles
}

// headerAt is this member's header for an answer given at revision.
func (s *shared) headerAt(revision kv.Revision) wire.Header {
	return wire.Header{
		Cluster:  s.cluster,
		Member:   s.self,
		Revision: revision,
		Term:     uint64(s.options.Member.Term()),
	}
}

// headerNow is this member's header at the store's current revision.
func (s *shared) headerNow() wire.Header { return s.headerAt(s.revision()) }

// revision is the store's current revision.
func (s *shared) revision() kv.Revision {
	machine, release := s.options.Member.Machine()
	defer release()
	return machine.Store().Revision()
}

// alarms are those that the cluster stores.
func (s *shared) alarms() []kv.Alarm {
	machine, release := s.options.Member.Machine()
	defer release()
	return machine.Alarms()
}

// awaitState waits until what this member shows may be read: for a linearizable read all that was acknowledged, else what this
// member itself has answered.
func (s *shared) awaitState(ctx context.Context, serializable bool) error {
	if serializable {
		return s.showOwn(ctx)
	}
	return s.readIndex(ctx)
}

// propose replicates a command in the name of the caller, and makes its rejection an error.
func (s *shared) propose(ctx context.Context, command *kv.Command) (kv.Result, error) {
	return s.access.Propose(ctx, command, s.replicate)
}

// replicate is propose in the name that the command bears.
func (s *shared) replicate(ctx context.Context, command *kv.Command) (kv.Result, error) {
	if kv.AsksForPairs(command) { // what is executed can not be taken back if there is no room for the answer
		if err := s.options.Answers.Ready(ctx); err != nil {
			return kv.Result{}, s.unanswered(err)
		}
	}
	s.stats.pending.Add(1)
	ctx, tell := routed(ctx)
	begun := s.timings.Now()
	result, err := s.bounds.costly.Propose(ctx, command, s.options.Member.Propose)
	s.timings.Command(command, begun, err)
	s.stats.pending.Add(-1)
	tell()
	if err != nil {
		s.stats.failedProposals.Add(1)
		return result, writeTimeout(err)
	}
	if result.Err != nil {
		return result, result.Err
	}
	s.noteOwn(result.Revision)
	return result, s.complete(ctx, command, &result)
}

// noteOwn takes note of the answer to a write. One that was applied before it was answered is not worth remembering.
func (s *shared) noteOwn(revision kv.Revision) {
	if revision > s.revision() {
		s.own.note(revision)
	}
}

// showOwn waits until what this member shows holds the writes that it has answered. Every write that was acknowledged is among
// those that a linearizable read shows.
func (s *shared) showOwn(ctx context.Context) error {
	missing := s.own.missing(s.revision())
	if missing == 0 {
		return nil
	}
	patience, cancel := context.WithTimeout(ctx, waitForOwn(ctx))
	defer cancel()
	if s.readIndex(patience) != nil && ctx.Err() == nil {
		raise(&s.own.givenUp, int64(missing))
	}
	return ctx.Err()
}
