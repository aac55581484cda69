package guard_test

import (
	"slices"
	"testing"
	"time"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/identity"
	"github.com/quorate/quorate/internal/sim/guard"
)

func claim(member consensus.MemberID, boots uint64) identity.Claim {
	return identity.Claim{Cluster: 1, Member: member, Storage: consensus.StorageID{byte(member)},
		Life: consensus.Life{Boots: boots, Nonce: boots}}
}

// Ensure that a life that only claims to be the member takes nothing from the life that answers at its address, before or
// after.
func TestGuard_Judge_said(t *testing.T) {
	d := guard.New(claim(1, 1), nil, identity.Rules{}, time.Second)
	config := &consensus.Config{Voters: []consensus.MemberID{1, 2}, Members: []consensus.Member{
		{ID: 1, Storage: consensus.StorageID{1}}, {ID: 2, Storage: consensus.StorageID{2}},
	}}
	d.Configure(config)
	impostor, member := claim(2, 9), claim(2, 2)
	speaks := func(consensus.Life) (time.Duration, bool) { return 5 * time.Second, true }
	for _, row := range []struct {
		claim    *identity.Claim
		evidence identity.Evidence
		want     guard.Outcome
		met      int
		kept     int
	}{
		{&impostor, identity.Said, guard.Welcome, 0, 0},
		{&member, identity.Dialled, guard.Remember, 1, 1},
		{&impostor, identity.Said, guard.Refused, 1, 0},
	} {
		d.Configure(config) // all claims are judged again
		got, refusal := d.Judge(row.claim, row.evidence, time.Second, speaks)
		acknowledged := []consensus.Message{{Kind: consensus.MsgAppendReply, From: 2, To: 1}}
		if kept, _ := d.Admit(row.claim, row.evidence, acknowledged); got != row.want || len(d.Met()) != row.met || len(kept) != row.kept {
			t.Errorf("%v: outcome %d (%v), met %v, kept %d; want outcome %d", row.claim.Life, got, refusal, d.Met(), len(kept), row.want)
		}
	}
}

// Ensure that a process that answered at its address before it was a member, and speaks as one before it is dialled again, is
// proved by its next answer: all claims are judged again after a change of the configuration.
func TestGuard_Judge_joins(t *testing.T) {
	d := guard.New(claim(1, 1), nil, identity.Rules{}, time.Second)
	silent := func(consensus.Life) (time.Duration, bool) { return 0, false }
	joined := claim(2, 1)
	config := consensus.Config{Members: []consensus.Member{{ID: 1, Storage: consensus.StorageID{1}}}}
	d.Configure(&config)
	if got, _ := d.Judge(&joined, identity.Dialled, 0, silent); got != guard.Welcome {
		t.Fatalf("before it is a member: outcome %d", got)
	}
	config.Members = append(config.Members, consensus.Member{ID: 2, Storage: consensus.StorageID{2}})
	d.Configure(&config)
	acknowledged := []consensus.Message{{Kind: consensus.MsgAppendReply, From: 2, To: 1}}
	for _, row := range []struct {
		evidence identity.Evidence
		want     guard.Outcome
		kept     int
	}{{identity.Said, guard.Welcome, 0}, {identity.Dialled, guard.Remember, 1}, {identity.Said, guard.Welcome, 0}} {
		got, _ := d.Judge(&joined, row.evidence, 0, silent)
		if kept, _ := d.Admit(&joined, row.evidence, slices.Clone(acknowledged)); got != row.want || len(kept) != row.kept {
			t.Errorf("evidence %d: outcome %d, kept %d; want %d, %d", row.evidence, got, len(kept), row.want, row.kept)
		}
	}
}

// Ensure that a second life waits while it is not known whether the first one is still alive, is refused if it is, and accepted
// if it stays silent; and that the first life is refused from then on.
func TestGuard_Judge_secondLife(t *testing.T) {
	for _, row := range []struct {
		name  string
		heard time.Duration // from the first life
		want  guard.Outcome
	}{
		{"it speaks", 2 * time.Second, guard.Refused},
		{"it is silent", 0, guard.Remember},
	} {
		d := guard.New(claim(1, 1), nil, identity.Rules{}, time.Second)
		d.Configure(&consensus.Config{Voters: []consensus.MemberID{1, 2}, Members: []consensus.Member{
			{ID: 1, Storage: consensus.StorageID{1}}, {ID: 2, Storage: consensus.StorageID{2}},
		}})
		first, second := claim(2, 1), claim(2, 2)
		heard := time.Duration(0)
		listen := func(consensus.Life) (time.Duration, bool) { return heard, true }
		if got, _ := d.Judge(&first, identity.Dialled, 0, listen); got != guard.Remember {
			t.Fatalf("%s: the first life: outcome %d", row.name, got)
		}
		if got, _ := d.Judge(&second, identity.Dialled, time.Second, listen); got != guard.Waits {
			t.Errorf("%s: the second life at once: outcome %d, want that it waits", row.name, got)
		}
		heard = row.heard
		if got, _ := d.Judge(&second, identity.Dialled, 3*time.Second, listen); got != row.want {
			t.Errorf("%s: the second life: outcome %d, want %d", row.name, got, row.want)
		}
		wantFirst := guard.Refused
		if row.want == guard.Refused {
			wantFirst = guard.Welcome
		}
		closed := func(consensus.Life) (time.Duration, bool) { return 0, false }
		if got, _ := d.Judge(&first, identity.Dialled, 4*time.Second, closed); got != wantFirst {
			t.Errorf("%s: the first life afterwards: outcome %d, want %d", row.name, got, wantFirst)
		}
	}
}
