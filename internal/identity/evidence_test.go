package identity_test

import (
	"testing"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/identity"
)

func TestEvidence_Believed(t *testing.T) {
	for evidence, want := range map[identity.Evidence]bool{
		identity.Said: false, identity.Certified: true, identity.Dialled: true,
	} {
		if got := evidence.Believed(identity.Rules{}); got != want {
			t.Errorf("evidence %d: got %t, want %t", evidence, got, want)
		}
		if !evidence.Believed(identity.Rules{BelieveAnybody: true}) {
			t.Errorf("evidence %d is not believed without the rule", evidence)
		}
	}
}

// Ensure that only an answer that names cluster and member is presence, and only one that names another is absence.
func TestRecognise(t *testing.T) {
	const own, other = 2, 8
	for _, row := range []struct {
		name    string
		answer  identity.Claim
		bound   byte // of the member that is sought; zero: it is not bound
		storage byte // that the answer shows; zero: it shows none
		want    identity.Presence
	}{
		{"the member", identity.Claim{Cluster: 7, Member: 9}, 0, 0, identity.Present},
		{"another member", identity.Claim{Cluster: 7, Member: 8}, 0, 0, identity.Another},
		{"its namesake in another cluster", identity.Claim{Cluster: 6, Member: 9}, 0, 0, identity.Another},
		{"nobody", identity.Claim{}, 0, 0, identity.Unsure},
		{"a member of no cluster", identity.Claim{Member: 9}, 0, 0, identity.Unsure},
		{"no member of the cluster", identity.Claim{Cluster: 7}, 0, 0, identity.Unsure},
		{"a process without data", identity.Claim{Cluster: 7, Member: 9, Empty: true}, 0, 0, identity.Empty},
		{"and it shows no directory", identity.Claim{Cluster: 7, Member: 9, Empty: true}, own, 0, identity.Empty},
		{"and it has another directory", identity.Claim{Cluster: 7, Member: 9, Empty: true}, own, other, identity.Empty},
		{"and it has the member's, where it will make the data", identity.Claim{Cluster: 7, Member: 9, Empty: true}, own, own,
			identity.Present},
		{"and it is of another cluster", identity.Claim{Cluster: 6, Member: 9, Empty: true}, 0, 0, identity.Another},
		{"the member with its directory", identity.Claim{Cluster: 7, Member: 9}, own, own, identity.Present},
		{"a member that does not say which directory it has", identity.Claim{Cluster: 7, Member: 9}, own, 0, identity.Present},
		{"its namesake with another directory", identity.Claim{Cluster: 7, Member: 9}, own, other, identity.Another},
		{"a member that is not bound", identity.Claim{Cluster: 7, Member: 9}, 0, other, identity.Present},
	} {
		sought := identity.Sought{Cluster: 7, Member: 9, Storage: consensus.StorageID{row.bound}}
		row.answer.Storage = consensus.StorageID{row.storage}
		if got := identity.Recognise(sought, &row.answer); got != row.want {
			t.Errorf("%s: got %d, want %d", row.name, got, row.want)
		}
	}
	for _, p := range []identity.Presence{identity.Another, identity.Empty, identity.NoPeerPort} {
		if !p.Misleads() {
			t.Errorf("finding %d is taken for the member", p)
		}
	}
	for _, p := range []identity.Presence{identity.Silent, identity.Present, identity.Unsure} {
		if p.Misleads() {
			t.Errorf("finding %d is taken for somebody else", p)
		}
	}
}

// ghosts plays a member that serves, meets one that was recovered by mistake, and loses its quorum later.
func ghosts(rules identity.Rules) *identity.Succession {
	s := &identity.Succession{Own: epoch(0, 0), Rules: rules}
	s.Look()
	s.Looked()
	s.Led()
	s.Meet(ofEpoch(consensus.MemberID(3), epoch(1, 5)))
	s.Led()
	return s
}

// Ensure that a newer epoch which a quorum has outlived ends no member by memory alone: after the quorum is lost a member
// looks again, and what it meets then decides.
func TestSuccession_Led_outlives(t *testing.T) {
	s := ghosts(identity.Rules{})
	if got := s.State(true); got != identity.Contested {
		t.Errorf("while the quorum lives: got %d", got)
	}
	if got := s.State(false); got != identity.Looking {
		t.Errorf("after the quorum was lost, before it has looked again: got %d", got)
	}
	s.Looked() // of a round that began before
	if got := s.State(false); got != identity.Looking {
		t.Errorf("a round that began while the quorum lived counts: got %d", got)
	}
	s.Look()
	s.Looked()
	if got := s.State(false); got != identity.Contested {
		t.Errorf("nobody of the newer epoch answered: got %d", got)
	}
	s.Meet(ofEpoch(3, epoch(1, 5)))
	if got := s.State(false); got != identity.Superseded || s.WaysOut() == "" {
		t.Errorf("the newer epoch was met without a quorum: got %d", got)
	}
	if got := ghosts(identity.Rules{RememberGhosts: true}).State(false); got != identity.Superseded {
		t.Errorf("without the rule nothing breaks: got %d", got)
	}
}

// Ensure that an epoch which a quorum has outlived is forgotten, and that one met without a quorum is not.
func TestSuccession_Looked_forgetsGhosts(t *testing.T) {
	s := ghosts(identity.Rules{})
	lost := identity.Succession{Own: epoch(0, 0)}
	lost.Meet(ofEpoch(3, epoch(1, 5)))
	for range 10 {
		for _, each := range []*identity.Succession{s, &lost} {
			each.Look()
			each.Looked()
		}
		s.Led()
	}
	if left := s.Foreign(); len(left) > 0 {
		t.Errorf("a quorum has outlived %v, and they are remembered", left)
	}
	if got := lost.State(false); got != identity.Superseded {
		t.Errorf("one that was met without a quorum is forgotten: got %d", got)
	}
}
