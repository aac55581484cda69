package autopilot

// Words is how many addresses' words are kept.
func (l *Learned) Words() int { return len(l.words) }
