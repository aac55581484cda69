package apply

import (
	"fmt"
	"slices"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/kv"
)

// applyConfig makes the configuration of an entry the applied one. It was in force in consensus before, so there is
// nothing to refuse: not even a session that is unknown.
func (m *Machine) applyConfig(e *consensus.Entry, res *kv.Result) error {
	change, rest, err := consensus.DecodeConfigChange(e.Payload)
	if err != nil || len(rest) != 0 {
		return fmt.Errorf("%w: configuration %v: %w", ErrBadEntry, e.Mark(), err)
	}
	w := m.batch.w
	id := consensus.ConfigID{Index: e.Index, Term: e.Term}
	meta := consensus.SnapshotMeta{Mark: e.Mark(), Config: change.Config, ConfigID: id}
	w.Set(rowConfig, consensus.AppendSnapshotMeta(nil, &meta))
	m.mu.Lock()
	m.config, m.configID = meta.Config.Clone(), id
	m.mu.Unlock()
	for _, member := range change.Tombs {
		m.bury(member, e.Index)
	}
	res.Revision = w.Revision()
	// The proposer may have removed itself, and its session with it, by this very entry.
	if s := m.sessions.find(e.Proposal.Session); s != nil && !e.Proposal.IsZero() && !s.has(e.Proposal.Sequence) {
		m.keepResult(s, e.Proposal.Sequence, res)
	}
	return w.Err()
}

// bury removes what is kept for a member that will never come back: its sessions with their results, what it published,
// and its alarms, which nobody could disarm by curing it. The tombstone stays, and stands for all its retired sessions.
func (m *Machine) bury(member consensus.MemberID, at consensus.Index) {
	where, found := findTombstone(m.tombs, member)
	if found {
		return
	}
	w := m.batch.w
	w.Set(memberRow(rowTombstone, member), appendIndex(at))
	m.mu.Lock()
	m.tombs = slices.Insert(slices.Clone(m.tombs), where, Tombstone{Member: member, Index: at})
	m.mu.Unlock()
	for _, s := range slices.Clone(m.sessions.byMember[member]) {
		m.retireSession(s.id)
	}
	if _, known := m.sessions.highest[member]; known {
		delete(m.sessions.highest, member)
		w.DeleteRaw(memberRow(rowHighest, member))
	}
	if _, known := m.Published(member); known {
		w.DeleteRaw(memberRow(rowPublished, member))
		m.setPublished(member, nil)
	}
	m.alarm(&kv.AlarmOp{Member: uint64(member)})
}
