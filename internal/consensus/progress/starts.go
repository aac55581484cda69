package progress

// maxRoundsNoted bounds the rounds whose start is remembered: an echo of an older one promises nothing.
const maxRoundsNoted = 1024

// Starts remembers, on a leader with a lease, when its last rounds began, for the promises that their echoes bring.
type Starts struct {
	list []start // oldest first
}

type start struct{ round, at uint64 }

// Add notes that a round begins now, and forgets those that began more than keepTicks ago.
func (s *Starts) Add(round, now, keepTicks uint64) {
	s.list = append(s.list, start{round, now})
	n := 0
	for n < len(s.list) && len(s.list)-n > maxRoundsNoted {
		n++
	}
	for n < len(s.list) && now-s.list[n].at > keepTicks {
		n++
	}
	s.list = append(s.list[:0], s.list[n:]...)
}

// Of returns when the latest round began that an echo of round answers; false if that is not known any more.
func (s *Starts) Of(round uint64) (at uint64, known bool) {
	for i := len(s.list) - 1; i >= 0; i-- {
		if s.list[i].round <= round {
			return s.list[i].at, true
		}
	}
	return 0, false
}

// Clear forgets all rounds.
func (s *Starts) Clear() { s.list = s.list[:0] }
