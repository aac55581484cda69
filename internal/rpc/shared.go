package rpc

import (
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/limits/rates"
	"github.com/quorate/quorate/internal/rpc/access"
	"github.com/quorate/quorate/internal/rpc/timings"
	"github.com/quorate/quorate/internal/rpc/top"
	"github.com/quorate/quorate/internal/rpc/wire"
)

// shared is the state that all of etcd's services share: the member that they serve and their bounds.
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
	top     *top.Meter
	limiter rates.Limiter
	splits  splits
	audits  audits
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

// alarms are the alarms that the cluster stores.
func (s *shared) alarms() []kv.Alarm {
	machine, release := s.options.Member.Machine()
	defer release()
	return machine.Alarms()
}
