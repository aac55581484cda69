package member

// StaleProposals counts the commands of this member that a leader refused because they were bound to a configuration
// that was no longer in force. They went out again at once.
func (m *Member) StaleProposals() uint64 {
	if m.hasStarted() {
		return m.node.Proposals().Stale()
	}
	return 0
}

// hasStarted reports whether Start has ended well.
func (m *Member) hasStarted() bool {
	select {
	case <-m.started:
		return true
	default:
		return false
	}
}
