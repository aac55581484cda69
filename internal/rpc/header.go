package rpc

import "github.com/quorate/quorate/internal/kv"

import (
	"github.com/quorate/quorate/internal/rpc/wire"
)

// headerAt is this member's header for an answer given at revision.
func (s *Services) headerAt(revision kv.Revision) wire.Header {
	return wire.Header{
		Cluster:  s.cluster,
		Member:   s.self,
		Revision: revision,
		Term:     uint64(s.options.Member.Term()),
	}
}

// headerNow is this member's header at the store's current revision.
func (s *Services) headerNow() wire.Header { return s.headerAt(s.revision()) }

// revision is the store's current revision.
func (s *Services) revision() kv.Revision {
	machine, release := s.options.Member.Machine()
	defer release()
	return machine.Store().Revision()
}
