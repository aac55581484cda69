package lease

// restartsPerSecond bounds the leases restarted by a new leader that may end in the same second: three quarters of those that
// it can revoke in one (package expiry: maxRevokesInScan in each ScanInterval), as in etcd, so that leases granted since then
// do not wait behind them.
const restartsPerSecond = 750

// spread gives each restarted lease the second in which it ends: the one of its TTL, or the next that is not full. Seconds are
// counted from the moment of Promote, its extension included.
type spread struct {
	ending map[int64]int   // leases that end in a second
	after  map[int64]int64 // of a full second: where the search continues
}

// place returns the first second from wanted on that is not full, and fills it by one.
func (s *spread) place(wanted int64) int64 {
	if s.ending == nil {
		s.ending, s.after = map[int64]int{}, map[int64]int64{}
	}
	free := wanted
	for next, full := s.after[free]; full; next, full = s.after[free] {
		free = next
	}
	for at := wanted; at != free; { // the next search finds it in one step
		at, s.after[at] = s.after[at], free
	}
	if s.ending[free]++; s.ending[free] == restartsPerSecond {
		s.after[free] = free + 1
	}
	return free
}
