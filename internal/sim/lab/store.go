package lab

import (
	"slices"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/raft"
)

// store is the state machine: the applied writes, and the configuration. Its state is durable at once.
type store struct {
	position position
	writes   []uint64 // in order; a retried one counts once
	aborted  []uint64 // given up as orphans of the fast path
	revision uint64
	config   consensus.Config
	id       consensus.ConfigID
	protocol consensus.Protocol
	open     bool
	leaving  []memberID // will be removed for ever once the change is settled
	tombs    []memberID
}

// found makes s the store of a member that founds the cluster.
func (s *store) found(config *consensus.Config) {
	s.position, s.id, s.config = position{Index: 1, Term: 1}, consensus.ConfigID{Index: 1, Term: 1}, config.Clone()
}

func (s *store) clone() store {
	c := *s
	c.writes, c.tombs, c.leaving = slices.Clone(s.writes), slices.Clone(s.tombs), slices.Clone(s.leaving)
	c.aborted = slices.Clone(s.aborted)
	return c
}

func (s *store) meta() consensus.SnapshotMeta {
	meta := consensus.SnapshotMeta{Position: s.position, Config: s.config, ConfigID: s.id, Protocol: s.protocol, Open: s.open}
	if s.open {
		meta.Tombs = s.leaving
	}
	return meta
}

func (s *store) apply(e *entry) {
	s.position = e.Position()
	switch {
	case e.Kind == consensus.EntryCommand:
		s.write(e)
	case e.Kind == consensus.EntryAbort && !slices.Contains(s.writes, e.Proposal.Sequence):
		s.aborted = append(s.aborted, e.Proposal.Sequence)
	case e.Kind == consensus.EntryConfig:
		change, _, err := consensus.DecodeConfigChange(e.Payload)
		if err != nil {
			return // it changes nothing, here as on every other member
		}
		s.config, s.id, s.protocol = change.Config, consensus.ConfigID{Index: e.Index, Term: e.Term}, change.Protocol
		s.leaving = change.Tombs
		s.open = change.Config.IsJoint() || change.Protocol == consensus.ProtocolApply
		s.bury()
	case settles(e):
		if id, _, err := consensus.DecodeConfigID(e.Payload); err == nil && id.Index == s.id.Index {
			s.open = false
			s.bury()
		}
	}
}

// write applies a write, once, as docs/fast-path.md says.
func (s *store) write(e *entry) {
	if s.decided(e.Proposal.Sequence) || e.ExactRevision != 0 && e.ExactRevision <= s.revision {
		return
	}
	s.revision = max(s.revision+1, e.ExactRevision)
	s.writes = append(s.writes, e.Proposal.Sequence)
}

// decided reports whether no later entry of a write can change anything.
func (s *store) decided(number uint64) bool {
	return slices.Contains(s.writes, number) || slices.Contains(s.aborted, number)
}

func (s *store) bury() {
	if s.open {
		return
	}
	s.tombs = append(s.tombs, s.leaving...)
	s.leaving = nil
}

// settles reports whether an entry says that a configuration is in force.
func settles(e *entry) bool { return e.Kind == consensus.EntryNoop && len(e.Payload) > 0 }

// apply gives the state machine what was handed out, after a while.
func (m *member) apply() {
	if m.applying || len(m.handed) == 0 {
		return
	}
	m.applying = true
	m.soon(m.w.pace.apply, func() {
		m.applying = false
		batch := m.handed
		m.handed = nil
		for i := range batch {
			m.store.apply(&batch[i])
			m.w.clients.applied(m, &batch[i])
		}
		if len(batch) > 0 {
			m.step(raft.Applied{Index: m.store.position.Index, Revision: m.store.revision})
		}
		m.apply()
	})
}

// stream sends a copy of the store to a member that the log cannot feed.
func (m *member) stream(id memberID) {
	w, to, copied := m.w, m.w.member(id), m.store.clone()
	w.journal.add(KindNote, m.id, "%v streams a snapshot of its store to %v", m.id, id)
	answer := func(ok bool) {
		m.soon(w.delay, func() { m.step(raft.SnapshotSent{To: id, Position: copied.position, OK: ok}) })
	}
	m.soon(w.net.delayOf(m.id, id), func() {
		ok := to.running() && !w.net.cut(m.id, id)
		if ok {
			to.received[copied.position] = copied
		}
		answer(ok)
	})
}

// install swaps the store for a snapshot that was received.
func (m *member) install(meta consensus.SnapshotMeta) {
	m.soon(m.w.pace.apply, func() {
		got, ok := m.received[meta.Position]
		if ok {
			m.handed, m.store = nil, got.clone()
		}
		m.step(raft.SnapshotInstalled{
			Meta: meta, Tombstones: slices.Clone(got.tombs), Revision: got.revision, Failed: !ok,
		})
	})
}
