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
	meta := consensus.SnapshotMeta{
		Mark: e.Mark(), Config: change.Config, ConfigID: consensus.ConfigID{Index: e.Index, Term: e.Term},
		Protocol: change.Protocol, Tombs: change.Tombs, Open: opens(&change),
	}
	m.setConfig(&meta)
	if !meta.Open {
		m.buryAll(change.Tombs, e.Index)
	}
	res.Revision = w.Revision()
	// The proposer may have removed itself, and its session with it, by this very entry.
	if s := m.sessions.find(e.Proposal.Session); s != nil && !e.Proposal.IsZero() && !s.has(e.Proposal.Sequence) {
		m.batch.answer.clear()
		m.keepResult(s, e.Proposal.Sequence, res)
	}
	return w.Err()
}

// opens reports whether a change is not settled by being committed: a second entry, or a no-op that names it, follows.
func opens(change *consensus.ConfigChange) bool {
	return change.Config.IsJoint() || change.Protocol == consensus.ProtocolApply
}

// applyNoop settles the configuration that the entry names, if it names one.
func (m *Machine) applyNoop(e *consensus.Entry, res *kv.Result) error {
	res.Revision = m.batch.w.Revision()
	if len(e.Payload) == 0 {
		return nil
	}
	id, rest, err := consensus.DecodeConfigID(e.Payload)
	if err != nil || len(rest) != 0 {
		return fmt.Errorf("%w: no-op %v: %w", ErrBadEntry, e.Mark(), err)
	}
	meta := m.SnapshotMeta()
	if !meta.Open || meta.ConfigID.Index != id.Index {
		return nil
	}
	tombs := meta.Tombs
	meta.Mark, meta.Open, meta.Tombs = e.Mark(), false, nil
	m.setConfig(&meta)
	m.buryAll(tombs, e.Index)
	return m.batch.w.Err()
}

// setConfig makes meta the configuration of the state. Readers see it as it is in force now that its entry is applied.
func (m *Machine) setConfig(meta *consensus.SnapshotMeta) {
	m.batch.w.Set(rowConfig, consensus.AppendSnapshotMeta(nil, meta))
	m.takeConfig(meta)
}

func (m *Machine) takeConfig(meta *consensus.SnapshotMeta) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.meta = *meta
	m.meta.Config = meta.Config.Clone()
	m.config, m.configID = m.meta.Config, meta.ConfigID
	if meta.Protocol == consensus.ProtocolActivate && meta.Config.IsJoint() {
		m.config, m.configID.Stage = meta.Config.Settle(), 1
	}
}

func (m *Machine) buryAll(members []consensus.MemberID, at consensus.Index) {
	for _, member := range members {
		m.bury(member, at)
	}
}

// bury removes what is kept for a member that will never come back: what it published, and its alarms, which nobody could
// disarm by curing it. It opens no session any more. Those that are open stay until the leader retires them, some time
// later: what clients of the member asked it for just before may still be on its way. The tombstone stays, and stands for
// all its retired sessions.
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
