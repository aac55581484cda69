package lease

// restartsPerSecond is how many of the leases that a new leader restarts may end in the same second: three quarters of
// what it can revoke in one (package expiry: maxRevokesInScan in each ScanInterval), as in etcd, so that leases granted
// since then do not wait behind them.
const restartsPerSecond = 750

// spread gives each restarted lease the second in which it ends: the one that its TTL says, or the next that is not
// full. Seconds are counted from the moment of Promote, its extension included.
type spread struct {
	ending map[int64]int   // leases that end in a second
	after  map[int64]int64 // of a full second: where to look next
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
	for at := wanted; at != free; { // who comes next finds it in one step
		at, s.after[at] = s.after[at], free
	}
	if s.ending[free]++; s.ending[free] == restartsPerSecond {
		s.after[free] = free + 1
	}
	return free
}
