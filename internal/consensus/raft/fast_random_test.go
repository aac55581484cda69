package raft_test

import (
	"os"
	"strconv"
	"testing"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/raft"
)

// Ensure that no walk breaks a law of Raft or of the fast path. FAST_SEED=n plays one walk and tells it, FAST_RUNS=n more of them, from
// seed 1 or FAST_SEED on.
func TestReplica_Step_fastWalks(t *testing.T) {
	first, runs := uint64(1), 1500
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
	var sum tally
	for seed := first; seed < first+uint64(runs); seed++ {
		x := newWalk(seed, aim{})
		if err := x.run(60, seed%4 == 0); err != nil {
			t.Fatalf("FAST_SEED=%d: %v\n%s", seed, err, replay(seed, aim{}, 60, 300, seed%4 == 0))
		}
		sum.add(x)
	}
	t.Logf("seeds %d to %d: %+v", first, first+uint64(runs)-1, sum)
}

// tally is what walks did.
type tally struct {
	walks, delivered, elections, wins, committed                 int
	recovered, skipped, aborted, reads, earlyReads, leadersTried int
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
	if s.changes == nil {
		s.changes = map[consensus.Protocol]int{}
	}
	for protocol, n := range x.laws.protocols {
		s.changes[protocol] += n
	}
}

var _ = raft.Follower
