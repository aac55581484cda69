package apply

// SizeBytes is what counts against the quota: the bytes of all versions that are kept, uncompressed, and the leases with
// the keys that hang on them. It is the same on all members, falls as soon as history is compacted, and does not depend on
// what the engine has flushed or merged.
func (m *Machine) SizeBytes() int64 { return m.store.LogicalBytes() + m.leases.SizeBytes() }
