package raft_test

import (
	"slices"

	"github.com/quorate/quorate/internal/consensus"
)

// store is the state machine: it keeps the applied entries, and the configuration as kv/apply does.
type store struct {
	position position
	commands []string
	about    consensus.SnapshotMeta // of the last configuration entry
	tombs    []memberID
	keys     keys
}

func (s store) clone() store {
	s.commands = slices.Clone(s.commands)
	s.tombs = slices.Clone(s.tombs)
	s.keys = s.keys.clone()
	return s
}

func (s *store) meta() consensus.SnapshotMeta {
	meta := s.about
	meta.Position = s.position
	return meta
}

func (s *store) apply(e *entry) {
	s.position = e.Position()
	switch e.Kind {
	case consensus.EntryCommand:
		s.commands = append(s.commands, string(e.Payload))
		s.keys.apply(e)
	case consensus.EntryAbort:
		s.keys.abort(e)
	case consensus.EntryConfig:
		change, err := consensus.DecodeConfigChange(e.Payload)
		if err != nil {
			panic(err)
		}
		s.about = consensus.SnapshotMeta{
			Config: change.Config, ConfigID: consensus.ConfigID{Index: e.Index, Term: e.Term}, Protocol: change.Protocol,
			Open: change.Config.IsJoint() || change.Protocol == consensus.ProtocolApply, Tombs: change.Tombs,
		}
		s.settle()
	case consensus.EntryNoop:
		if id, err := consensus.DecodeConfigID(e.Payload); err == nil && id.Index == s.about.ConfigID.Index {
			s.about.Open = false
			s.settle()
		}
	}
}

// settle adds the members that a settled change removed to the tombstones.
func (s *store) settle() {
	if s.about.Open {
		return
	}
	s.tombs = append(s.tombs, s.about.Tombs...)
	s.about.Tombs = nil
}
