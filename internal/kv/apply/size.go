package apply

// SizeBytes is what counts against the quota: the bytes of all versions that are kept, uncompressed. It is the same on
// all members, falls as soon as history is compacted, and does not depend on what the engine has flushed or merged.
func (m *Machine) SizeBytes() int64 { return m.store.LogicalBytes() }
