package proposals

// sent reports whether a proposal has left, as Abandon would.
func (t *Table) sent(p *Pending) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return !p.latest().ID.IsZero()
}
