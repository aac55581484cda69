package raft_test

import (
	"testing"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/raft"
)

// Ensure that Heir is a voter that can lead at once and is not cordoned.
func TestStatus_Heir(t *testing.T) {
	config := consensus.Config{
		Voters: []consensus.MemberID{1, 2, 3, 4, 5, 6}, Learners: []consensus.MemberID{7},
		Members: []consensus.Member{{ID: 1}, {ID: 2}, {ID: 3, Cordoned: true}, {ID: 4}, {ID: 5}, {ID: 6}, {ID: 7}},
	}
	able := func(id consensus.MemberID, match consensus.Index) raft.PeerProgress {
		return raft.PeerProgress{ID: id, Match: match, RecentActive: true, CaughtUp: true}
	}
	s := raft.Status{ID: 1, Config: config, Progress: []raft.PeerProgress{
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
