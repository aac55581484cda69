package raft_test

import (
	"os"
	"strconv"
	"testing"

	"github.com/quorate/quorate/internal/consensus"
)

// Ensure that no walk breaks a law of Raft or of the fast path. FAST_SEED=n plays one walk and tells it, FAST_RUNS=n more of them, from
// seed 1 or FAST_SEED on.
func TestReplica_Step_fastWalks(t *testing.T) {
	first, runs := uint64(1), 1200
	if testing.Short() {
		runs = 200
	}
	if s := os.Getenv("FAST_RUNS"); s != "" {
		runs, _ = strconv.Atoi(s)
	}
	if s := os.Getenv("FAST_SEED"); s != "" {
		first, _ = strconv.ParseUint(s, 10, 64)
		if os.Getenv("FAST_RUNS") == "" {
			runs = 1
			t.Log(replay(first, aim{}, 60, 4000, true))
		}
	}
	sum := tally{changes: map[consensus.Protocol]int{}}
	for seed := first; seed < first+uint64(runs); seed++ {
		x := newWalk(seed, aim{})
		if err := x.run(60, seed%4 == 0); err != nil {
			t.Fatalf("FAST_SEED=%d: %v\n%s", seed, err, replay(seed, aim{}, 60, 300, seed%4 == 0))
		}
		sum.add(x)
	}
	t.Logf("seeds %d to %d: %+v", first, first+uint64(runs)-1, sum)
	if runs >= 200 {
		sum.enough(t)
	}
}

// enough checks that the walks did what they are for: a test in which nothing happens finds nothing.
func (s *tally) enough(t *testing.T) {
	for _, c := range []struct {
		what       string
		got, least int // of a thousand walks
	}{
		{"elections", s.elections, 1000}, {"wins", s.wins, 1000}, {"wins that a later leader recovered", s.recoveredWins, 100},
		{"recovered", s.recovered, 300}, {"passed over", s.skipped, 40}, {"aborted", s.aborted, 100}, {"reads", s.reads, 300},
		{"reads that the leader did not answer", s.earlyReads, 150}, {"leaders checked", s.leadersTried, 3000}, {"snapshots", s.snapshots, 20},
		{"refused for the term", int(s.refused[consensus.RefusedTerm]), 300}, {"for the configuration", int(s.refused[consensus.RefusedConfig]), 5},
		{"for a conflict", int(s.refused[consensus.RefusedConflict]), 1000}, {"because known", int(s.refused[consensus.RefusedKnown]), 200},
		{"because closed", int(s.refused[consensus.RefusedClosed]), 100},
	} {
		if c.got*1000 < c.least*s.walks {
			t.Errorf("%s: %d in %d walks, want %d in 1000", c.what, c.got, s.walks, c.least)
		}
	}
	for protocol := consensus.ProtocolSingle; protocol <= consensus.ProtocolApply; protocol++ {
		if s.changes[protocol]*100 < s.walks {
			t.Errorf("changes by %v: %d in %d walks", protocol, s.changes[protocol], s.walks)
		}
	}
}

// tally is what walks did.
type tally struct {
	walks, delivered, elections, wins, committed                 int
	recovered, skipped, aborted, reads, earlyReads, leadersTried int
	snapshots, recoveredWins                                     int
	changes                                                      map[consensus.Protocol]int
	refused                                                      [consensus.RefusedReasons]uint64
}

func (s *tally) add(x *walk) {
	s.walks++
	s.delivered += x.delivered
	s.elections += x.elections
	s.wins += len(x.laws.wins)
	s.committed += len(x.laws.committed)
	s.skipped += x.laws.skipped
	s.aborted += x.laws.aborted
	s.reads += x.laws.served
	s.earlyReads += x.laws.early
	s.leadersTried += x.laws.opened
	counts := x.counts()
	s.recovered += int(counts.Recovered)
	for why, n := range counts.Refused {
		s.refused[why] += n
	}
	s.snapshots += x.laws.snapshots
	s.recoveredWins += x.laws.recoveredWins
	for protocol, n := range x.laws.protocols {
		s.changes[protocol] += n
	}
}
