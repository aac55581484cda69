package apply

import "github.com/quorate/quorate/internal/consensus"

// SizeBytes is what counts against the quota: the bytes of all versions that are kept, uncompressed, of the results of
// proposals, and of leases with the keys that hang on them. It falls as compacted history is deleted, which each member does
// at its own pace, so that members differ in it: nothing that is applied may depend on it. It does not depend on what the
// engine has flushed or merged.
func (m *Machine) SizeBytes() int64 {
	return m.store.LogicalBytes() + m.kept.Load() + m.leases.SizeBytes()
}

// ResultBytes is what the results of proposals take.
func (m *Machine) ResultBytes() int64 { return m.kept.Load() }

// SessionBytes is what the results of one session take.
func (m *Machine) SessionBytes(id consensus.SessionID) int64 {
	m.sessionMu.Lock()
	defer m.sessionMu.Unlock()
	if s := m.sessions.find(id); s != nil {
		return s.bytes
	}
	return 0
}
