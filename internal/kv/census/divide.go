package census

// Begin returns a survey of an interval that should be divided, if there is one. It replaces a survey that was begun before.
// The caller takes its iterator afterwards, from a store that has all changes that were applied.
func (c *Census) Begin() (s *Survey, due bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.survey = nil
	for n := range c.table.intervals {
		i := (c.next + n) % len(c.table.intervals)
		if v := &c.table.intervals[i]; v.weight > v.limit {
			c.next = i
			c.survey = c.begin(i)
			return c.survey, true
		}
	}
	c.due.Store(false)
	return nil, false
}

func (c *Census) begin(i int) *Survey {
	t := &c.table
	s := &Survey{Span: Span{Key: []byte(t.intervals[i].bound), End: []byte{0}}, Revision: t.applied, target: t.options.Keys}
	if upper, last := t.upper(i); !last {
		s.Span.End = []byte(upper)
	}
	s.parts = []found{{bound: t.intervals[i].bound}}
	return s
}

// Drop gives a survey up. The interval stays due.
func (c *Census) Drop(s *Survey) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.survey == s {
		c.survey = nil
	}
}

// Finish replaces the survey's interval with those that it found. end is true if the walk reached the end of the span. A walk
// that ended before Add returned true keeps its complete parts; if there is none, the interval is not divided again until it
// has doubled.
func (c *Census) Finish(s *Survey, end bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.survey != s {
		return
	}
	c.survey = nil
	if s.void {
		return
	}
	if !end && s.cut == "" {
		s.cut, s.parts = s.parts[len(s.parts)-1].bound, s.parts[:len(s.parts)-1]
	}
	i := c.table.find(s.Span.Key)
	if len(s.parts) == 0 {
		v := &c.table.intervals[i]
		v.limit = 2 * v.weight
		return
	}
	if n := len(s.parts); end && n > 1 && s.parts[n-1].keys < s.target/4 {
		s.parts[n-2].join(&s.parts[n-1])
		s.parts = s.parts[:n-1]
	}
	made := c.divide(s, &c.table.intervals[i], end)
	c.table.replace(i, made)
	c.next = i + len(made) - 1
	c.table.forget(visitsOfStep)
	if c.table.fixedBytes() > c.table.options.IntervalBytes {
		c.table.coarsen()
		c.due.Store(true)
	}
}

// divide returns the intervals that replace one.
func (c *Census) divide(s *Survey, old *interval, end bool) []interval {
	made := make([]interval, 0, len(s.parts)+1)
	for i := range s.parts {
		made = append(made, s.parts[i].interval(divideAt*c.table.options.Keys))
	}
	if !end {
		made = append(made, interval{bound: s.cut, last: unknown, floor: unknown, weight: noWeight, limit: old.limit})
	}
	at := 0
	for i := range s.journal {
		key := s.journal[i].Key
		for at = 0; at+1 < len(made) && made[at+1].bound <= string(key); at++ {
		}
		if v := &made[at]; v.known() {
			v.add(s.journal[i].Revision, s.journal[i].Born, c.table.horizon)
		}
	}
	if !old.known() {
		return made
	}
	sum := int64(0)
	for i := range made {
		sum += made[i].count
	}
	switch rest := &made[len(made)-1]; {
	case !end:
		rest.count, rest.last, rest.floor = old.count-sum, c.table.applied, c.table.applied
	case sum != old.count:
		c.corrected++
	}
	return made
}
