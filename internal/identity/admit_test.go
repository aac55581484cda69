package identity_test

import (
	"testing"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/identity"
)

// Ensure that a stream of a directory that is not the bound one ends, that of an unbound member loses what would be counted,
// that of a non-member is heard only by a process that joins, and all others pass.
func TestAdmit(t *testing.T) {
	config := &consensus.Config{Voters: []consensus.MemberID{1, 2, 3}, Members: bound(3)}
	for _, row := range []struct {
		name    string
		from    consensus.MemberID
		storage byte
		rules   identity.Rules
		said    bool // its life is not proved
		joins   bool // the receiver is in no configuration that it knows
		kept    int
		refused bool
	}{
		{name: "bound", from: 2, storage: 2, kept: 2},
		{name: "another directory", from: 2, storage: 9, refused: true},
		{name: "another directory, rule broken", from: 2, storage: 9, rules: identity.Rules{IgnoreBinding: true}, kept: 2},
		{name: "unbound", from: 3, storage: 3, kept: 1},
		{name: "unbound, rule broken", from: 3, storage: 3, rules: identity.Rules{CountUnbound: true}, kept: 2},
		{name: "non-member", from: 8, storage: 8},
		{name: "non-member, rule broken", from: 8, storage: 8, rules: identity.Rules{HearNonMembers: true}, said: true, kept: 2},
		{name: "non-member, of one that joins", from: 8, storage: 8, said: true, joins: true, kept: 2},
		{name: "bound, not proved, of one that joins", from: 2, storage: 2, said: true, joins: true},
		{name: "bound, not proved", from: 2, storage: 2, said: true},
		{name: "unbound, not proved", from: 3, storage: 3, said: true},
		{name: "another directory, not proved", from: 2, storage: 9, said: true, refused: true},
		{name: "non-member, not proved", from: 8, storage: 8, said: true},
	} {
		messages := []consensus.Message{
			{Kind: consensus.MsgAppendReply, From: row.from}, {Kind: consensus.MsgPreVote, From: row.from},
		}
		receiver := identity.Receiver{Self: 1, Known: config, Rules: row.rules}
		if row.joins {
			receiver.Self = 9
		}
		kept, refusal := receiver.Admit(row.from, storage(row.storage), !row.said, messages)
		if (refusal != nil) != row.refused || !row.refused && len(kept) != row.kept {
			t.Errorf("%s: kept %d, refusal %v; want %d, refused %t", row.name, len(kept), refusal, row.kept, row.refused)
		}
		if refusal != nil && refusal.Reason != identity.LostDisk {
			t.Errorf("%s: refused as %v", row.name, refusal.Reason)
		}
	}
}

// Ensure that a leader binds the members that it has met and no others, and itself with the first ones.
func TestBindings(t *testing.T) {
	config := &consensus.Config{Voters: []consensus.MemberID{1, 2, 3}, Members: bound(1, 2, 3)}
	met := []identity.Claim{claim(2, 2, 1), claim(7, 7, 1)}
	steps := identity.Bindings(config, met, 1, storage(1))
	if len(steps) != 2 || steps[0].Member.ID != 1 || steps[1].Member.ID != 2 || steps[1].Member.Storage != storage(2) {
		t.Errorf("got %+v, want members 1 and 2 to be bound", steps)
	}
	config.Members = bound(3)
	if steps := identity.Bindings(config, met, 1, storage(1)); len(steps) != 0 {
		t.Errorf("got %+v although both are bound", steps)
	}
	if steps := identity.Bindings(config, met, 1, consensus.NoStorage); steps != nil {
		t.Errorf("a leader without a directory binds %+v", steps)
	}
}

func TestStillSpeaks(t *testing.T) {
	for _, row := range []struct {
		name            string
		heard, now      int64
		speaks, decided bool
	}{
		{"nothing since", 0, 1010, false, false},
		{"something at once, which may be older than the claim", 1005, 1010, false, false},
		{"something later", 1020, 1021, true, true},
		{"silent for long", 1000, 1081, false, true},
	} {
		speaks, decided := identity.StillSpeaks(1000, row.heard, row.now, 160)
		if speaks != row.speaks || decided != row.decided {
			t.Errorf("%s: got %t, %t; want %t, %t", row.name, speaks, decided, row.speaks, row.decided)
		}
	}
}

func TestAddressed(t *testing.T) {
	if err := identity.Addressed(2, 2); err != nil {
		t.Error(err)
	}
	if identity.Addressed(2, 3) == nil {
		t.Error("what is meant for another member is taken")
	}
}
