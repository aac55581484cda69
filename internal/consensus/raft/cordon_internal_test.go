package raft

import (
	"testing"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/progress"
)

// Ensure that attempts to hand over go to the member with most of the log, then to another, ever more rarely, and that the pace
// is forgotten once attempts are far apart.
func TestHandoverPace_next(t *testing.T) {
	peers := func(match ...consensus.Index) (list []*progress.Peer) {
		for i, m := range match {
			list = append(list, &progress.Peer{ID: consensus.MemberID(i + 2), Match: m})
		}
		return list
	}
	var c handoverPace
	for _, step := range []struct {
		name string
		at   uint64
		fit  []*progress.Peer
		want consensus.MemberID
	}{
		{"nobody can lead", 0, nil, consensus.NoMember},
		{"that nobody could costs no time", 1, peers(5, 9, 7), 3},
		{"too early", 20, peers(5, 9, 7), consensus.NoMember},
		{"another one", 21, peers(5, 9, 7), 4},
		{"twice as long", 60, peers(5, 9, 7), consensus.NoMember},
		{"the first again", 61, peers(5, 9, 7), 3},
		{"there is nobody else", 61 + 80, peers(5, 9)[1:], 3},
		{"long after, as in the beginning", 61 + 80 + 320, peers(5, 9), 3},
		{"and soon again", 61 + 80 + 320 + 20, peers(5, 9), 2},
	} {
		if got := c.next(step.at, 10, step.fit); got != step.want {
			t.Errorf("%s: got %v, want %v", step.name, got, step.want)
		}
	}
	now := c.notBefore
	for range 20 {
		c.next(now, 10, peers(1))
		now = c.notBefore
	}
	if last := now; c.next(now, 10, peers(1)) == consensus.NoMember || c.notBefore-last != 10<<maxPauseDoublings {
		t.Errorf("the pause is %d ticks after many attempts, want %d", c.notBefore-last, 10<<maxPauseDoublings)
	}
}

// Ensure that whoever hands leadership over chooses a voter that can lead at once and is not cordoned.
func TestStatus_Heir(t *testing.T) {
	config := consensus.Config{
		Voters: []consensus.MemberID{1, 2, 3, 4, 5, 6}, Learners: []consensus.MemberID{7},
		Members: []consensus.Member{{ID: 1}, {ID: 2}, {ID: 3, Cordoned: true}, {ID: 4}, {ID: 5}, {ID: 6}, {ID: 7}},
	}
	able := func(id consensus.MemberID, match consensus.Index) PeerProgress {
		return PeerProgress{ID: id, Match: match, RecentActive: true, CaughtUp: true}
	}
	s := Status{ID: 1, Config: config, Progress: []PeerProgress{
		able(2, 5), able(3, 9), able(4, 6), {ID: 5, Match: 9, CaughtUp: true}, {ID: 6, Match: 9, RecentActive: true}, able(7, 9),
	}}
	if got := s.Heir(); got != 4 {
		t.Errorf("got %v, want 4, which has most", got)
	}
	s.Spared = []consensus.MemberID{4}
	if got := s.Heir(); got != 2 {
		t.Errorf("got %v, want 2", got)
	}
	s.Spared = []consensus.MemberID{2, 4}
	if got := s.Heir(); got != consensus.NoMember {
		t.Errorf("got %v, want nobody", got)
	}
	s.Spared = nil
	for i := range s.Config.Members {
		s.Config.Members[i].Cordoned = true
	}
	if got := s.Heir(); got != 3 {
		t.Errorf("all are cordoned: got %v, want 3", got)
	}
}
