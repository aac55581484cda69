package identity_test

import (
	"strings"
	"testing"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/identity"
)

// Ensure that a member obeys who says that its disk is lost, unless what it has applied binds it to that disk; and always what is
// said of the directory itself.
func TestObey(t *testing.T) {
	for _, row := range []struct {
		name    string
		reason  identity.Reason
		own     identity.Claim
		members []consensus.Member
		rules   identity.Rules
		want    bool
	}{
		{"bound to its own directory", identity.LostDisk, claim(1, 1, 1), bound(), identity.Rules{}, false},
		{"the same, rule broken", identity.LostDisk, claim(1, 1, 1), bound(), identity.Rules{ObeyOtherHistory: true}, true},
		{"bound to another", identity.LostDisk, claim(1, 9, 1), bound(), identity.Rules{}, true},
		{"not bound yet", identity.LostDisk, claim(1, 1, 1), bound(1), identity.Rules{}, true},
		{"nobody is bound", identity.LostDisk, claim(1, 1, 1), bound(1, 2, 3), identity.Rules{}, true},
		{"no member any more", identity.LostDisk, claim(9, 9, 1), bound(), identity.Rules{}, true},
		{"nothing applied", identity.LostDisk, claim(1, 1, 1), nil, identity.Rules{}, true},
		{"an older copy", identity.RolledBack, claim(1, 1, 1), bound(), identity.Rules{}, true},
		{"a second process", identity.Cloned, claim(1, 1, 1), bound(), identity.Rules{}, true},
	} {
		applied := consensus.Config{Members: row.members}
		if got := identity.Obey(row.reason, &row.own, &applied, row.rules); got != row.want {
			t.Errorf("%s: obeys: %t, want %t", row.name, got, row.want)
		}
	}
}

// Ensure that while a process of another history answers for a member, only the directory that is bound to it speaks for it.
func TestGuard_Contradicted(t *testing.T) {
	g := identity.NewGuard(claim(1, 1, 1), nil, identity.Rules{})
	g.Configure(bound(3))
	meet := func(c identity.Claim) identity.Reason {
		if refusal, _ := g.Meet(&c, identity.Dialled, identity.Speaker{}); refusal != nil {
			return refusal.Reason
		}
		return identity.Welcome
	}
	for _, id := range []consensus.MemberID{2, 3} {
		if !g.Contradicted(id) || g.Contradicted(id) || g.OtherHistory(id) == "" {
			t.Errorf("member %v: contradicted again and again, or not at all: %q", id, g.OtherHistory(id))
		}
	}
	nonMember := identity.NewGuard(claim(9, 9, 1), nil, identity.Rules{}) // whom the configuration does not name
	nonMember.Configure(bound())
	if nonMember.Contradicted(2); !strings.Contains(nonMember.OtherHistory(2), "it knows "+consensus.MemberID(9).String()+" by") {
		t.Errorf("it does not say which member it is: %q", nonMember.OtherHistory(2))
	}
	if g.Contradicted(9) || g.OtherHistory(9) != "" {
		t.Error("a non-member is remembered")
	}
	for _, row := range []struct {
		claim        identity.Claim
		before, then identity.Reason
	}{
		{claim(2, 2, 1), identity.Welcome, identity.Welcome},
		{claim(2, 8, 1), identity.OtherHistory, identity.LostDisk},
		{claim(3, 3, 1), identity.OtherHistory, identity.Welcome},
	} {
		before := meet(row.claim)
		g.Accepted(row.claim.Member)
		then := meet(row.claim)
		g.Contradicted(row.claim.Member)
		if before != row.before || then != row.then {
			t.Errorf("%v: %v, and %v once the member is there; want %v and %v", &row.claim, before, then, row.before, row.then)
		}
	}
	g.Configure(bound()[:2])
	if g.Configure(bound(3)); g.OtherHistory(3) != "" || g.OtherHistory(2) == "" {
		t.Errorf("after a configuration without 3: %q, %q", g.OtherHistory(2), g.OtherHistory(3))
	}
}
