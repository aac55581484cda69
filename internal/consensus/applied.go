package consensus

import "fmt"

// ApplyConfig takes over the configuration of a configuration entry that is applied. It was in force in consensus before, so
// there is nothing to refuse. It returns the members that are removed for ever.
func (m *SnapshotMeta) ApplyConfig(e *Entry) (removed []MemberID, err error) {
	change, err := DecodeConfigChange(e.Payload)
	if err != nil {
		return nil, fmt.Errorf("configuration %v: %w", e.Position(), err)
	}
	*m = SnapshotMeta{
		Position: e.Position(), Config: change.Config, ConfigID: ConfigID{Index: e.Index, Term: e.Term},
		Protocol: change.Protocol, Tombs: change.Tombs, Open: opens(&change),
	}
	if m.Open {
		return nil, nil
	}
	return change.Tombs, nil
}

// opens reports whether a change is not settled by being committed: a second entry, or a no-op that names it, follows.
func opens(change *ConfigChange) bool {
	return change.Config.IsJoint() || change.Protocol == ProtocolApply
}

// ApplyNoop settles the configuration that a no-op names, if it names the open one, and reports that. It returns the members
// that are removed for ever.
func (m *SnapshotMeta) ApplyNoop(e *Entry) (removed []MemberID, settled bool, err error) {
	if len(e.Payload) == 0 {
		return nil, false, nil
	}
	id, err := DecodeConfigID(e.Payload)
	if err != nil {
		return nil, false, fmt.Errorf("no-op %v: %w", e.Position(), err)
	}
	if !m.Open || m.ConfigID.Index != id.Index {
		return nil, false, nil
	}
	removed = m.Tombs
	m.Position, m.Open, m.Tombs = e.Position(), false, nil
	return removed, true, nil
}
