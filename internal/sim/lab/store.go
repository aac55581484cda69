package lab

import (
	"slices"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/raft"
	"github.com/quorate/quorate/internal/kv"
)

// store is the state machine: the applied writes, and the configuration. Its state is durable at once.
type store struct {
	position position
	writes   []uint64 // in order; a retried one counts once
	aborted  []uint64 // given up as orphans of the fast path
	revision uint64
	about    consensus.SnapshotMeta // of the last configuration entry
	tombs    []memberID
}

// found makes s the store of a member that founds the cluster.
func (s *store) found(config *consensus.Config) {
	s.position = position{Index: 1, Term: 1}
	s.about.ConfigID, s.about.Config = consensus.ConfigID{Index: 1, Term: 1}, config.Clone()
}

func (s *store) clone() store {
	c := *s
	c.writes, c.aborted, c.tombs = slices.Clone(s.writes), slices.Clone(s.aborted), slices.Clone(s.tombs)
	return c
}

func (s *store) meta() consensus.SnapshotMeta {
	meta := s.about
	meta.Position = s.position
	return meta
}

// apply applies an entry. One that nobody can read changes nothing, here as on every other member.
func (s *store) apply(e *entry) (result kv.Result) {
	s.position = e.Position()
	var removed []memberID
	switch e.Kind {
	case consensus.EntryCommand:
		result.Err = s.write(e)
	case consensus.EntryAbort:
		if !s.decided(e.Proposal.Sequence) {
			s.aborted = append(s.aborted, e.Proposal.Sequence)
		}
	case consensus.EntryConfig:
		removed, _ = s.about.ApplyConfig(e)
	case consensus.EntryNoop:
		removed, _, _ = s.about.ApplyNoop(e)
	}
	s.tombs = append(s.tombs, removed...)
	result.Revision = kv.Revision(s.revision)
	return result
}

// write applies a write, once, as docs/fast-path.md says.
func (s *store) write(e *entry) error {
	switch {
	case slices.Contains(s.aborted, e.Proposal.Sequence):
		return kv.ErrAborted
	case slices.Contains(s.writes, e.Proposal.Sequence):
		return nil
	case e.ExactRevision != 0 && e.ExactRevision <= s.revision:
		return kv.ErrSkipped
	}
	s.revision = max(s.revision+1, e.ExactRevision)
	s.writes = append(s.writes, e.Proposal.Sequence)
	return nil
}

// decided reports whether no later entry of a write can change anything.
func (s *store) decided(number uint64) bool {
	return slices.Contains(s.writes, number) || slices.Contains(s.aborted, number)
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
		results := make([]kv.Result, len(batch))
		for i := range batch {
			results[i] = m.store.apply(&batch[i])
			m.w.clients.applied(m, &batch[i])
		}
		m.w.judge.Executed(m.id, batch, results)
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
