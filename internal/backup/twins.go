package backup

// Twins returns the segments that lead, as far as names tell, where the segments of a plan do: those beside these that lead
// back to the plan's line, and those of the plan that begin within the one before. They have entries behind its base. Sums of
// the chain have no key, so that equal ones prove no equal entries. They are in the order of the log. without are objects that
// are left out.
func (c *Catalog) Twins(p *Plan, without func(Hash) bool) (twins []*Stored) {
	n := len(p.Segments)
	if n == 0 {
		return nil
	}
	within := map[Hash]bool{} // of each segment of the plan: it begins within the one before
	for i := range p.Segments {
		within[p.Segments[i].Hash] = i > 0 && p.Segments[i].First <= p.Segments[i-1].End.Index
	}
	var over []int
	beside := false
	for i := range c.Segments {
		s := &c.Segments[i]
		if s.First > p.Segments[n-1].End.Index {
			break
		}
		if begins, own := within[s.Hash]; begins || !own && s.End.Index > p.Base.Index && !without(s.Hash) {
			over = append(over, i)
			beside = beside || !own
		}
	}
	if len(over) == 0 {
		return nil
	}
	leads := make([]bool, len(c.Segments))
	if beside {
		leads = c.leadBack(c.lineOf(c.joints(without), p), without)
	}
	for _, i := range over {
		if s := &c.Segments[i]; leads[i] || within[s.Hash] {
			twins = append(twins, s)
		}
	}
	return twins
}
