package identity_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/identity"
)

const cluster consensus.ClusterID = 0xc1

func storage(n byte) consensus.StorageID { return consensus.StorageID{n} }

func claim(id consensus.MemberID, s byte, boots uint64) identity.Claim {
	return identity.Claim{Cluster: cluster, Member: id, Storage: storage(s),
		Life: consensus.Life{Boots: boots, Nonce: 100*uint64(s) + boots}, Address: "http://10.0.0.1:2380"}
}

// bound are three members, each bound to the storage id of its own number, but for those in unbound.
func bound(unbound ...consensus.MemberID) []consensus.Member {
	var members []consensus.Member
	for id := consensus.MemberID(1); id <= 3; id++ {
		m := consensus.Member{ID: id, Name: "m" + id.String(), PeerURLs: []string{"http://10.0.0." + id.String() + ":2380"}}
		if !slices.Contains(unbound, id) {
			m.Storage = storage(byte(id))
		}
		members = append(members, m)
	}
	return members
}

func TestGuard_Meet_claims(t *testing.T) {
	later := claim(2, 2, 5)
	later.Epoch = consensus.Epoch{Number: 1, Recovery: [16]byte{7}}
	foreign := claim(2, 2, 5)
	foreign.Cluster = 0xc2
	for _, row := range []struct {
		name  string
		claim identity.Claim
		rules identity.Rules
		want  identity.Reason
	}{
		{"who it is bound to", claim(2, 2, 5), identity.Rules{}, identity.Welcome},
		{"not a member", claim(9, 9, 1), identity.Rules{}, identity.Welcome},
		{"another data directory", claim(2, 8, 1), identity.Rules{}, identity.LostDisk},
		{"no data directory", claim(2, 0, 1), identity.Rules{}, identity.LostDisk},
		{"another data directory, rule broken", claim(2, 8, 1), identity.Rules{IgnoreBinding: true}, identity.Welcome},
		{"another cluster", foreign, identity.Rules{}, identity.ForeignCluster},
		{"another epoch", later, identity.Rules{}, identity.OtherEpoch},
		{"its own id", claim(1, 1, 1), identity.Rules{}, identity.WrongMember},
	} {
		g := identity.NewGuard(claim(1, 1, 1), nil, row.rules)
		g.Configure(bound())
		refusal, _ := g.Meet(&row.claim, identity.Dialled, identity.Speaker{})
		got := identity.Welcome
		if refusal != nil {
			got = refusal.Reason
		}
		if got != row.want {
			t.Errorf("%s: got %v, want %v", row.name, got, row.want)
		}
		if refusal != nil && *identity.Read("rpc error: code = X desc = " + refusal.Error()) != *refusal {
			t.Errorf("%s: the other side reads %v", row.name, identity.Read(refusal.Error()))
		}
	}
}

// Ensure that a copy of a data directory from the past is refused for ever, also by a guard that was started anew, and that
// a restart is not taken for one.
func TestGuard_Meet_rolledBack(t *testing.T) {
	own := claim(1, 1, 1)
	g := identity.NewGuard(own, nil, identity.Rules{})
	g.Configure(bound())
	meet := func(c identity.Claim) (identity.Reason, bool) {
		t.Helper()
		refusal, remember := g.Meet(&c, identity.Dialled, identity.Speaker{})
		if refusal != nil {
			return refusal.Reason, remember
		}
		return identity.Welcome, remember
	}
	for _, row := range []struct {
		name     string
		claim    identity.Claim
		want     identity.Reason
		remember bool
	}{
		{"first met", claim(2, 2, 4), identity.Welcome, true},
		{"connected again", claim(2, 2, 4), identity.Welcome, false},
		{"restarted", claim(2, 2, 5), identity.Welcome, true},
		{"a copy from before", claim(2, 2, 3), identity.RolledBack, false},
	} {
		if got, remember := meet(row.claim); got != row.want || remember != row.remember {
			t.Errorf("%s: got %v, remember %v; want %v, %v", row.name, got, remember, row.want, row.remember)
		}
		g.Saved()
	}
	again := claim(2, 2, 5)
	again.Life.Nonce++
	if got, _ := meet(again); got != identity.RolledBack {
		t.Errorf("another start with the same number: got %v", got)
	}
	g = identity.NewGuard(own, g.Seen(), identity.Rules{})
	g.Configure(bound())
	if got, _ := meet(claim(2, 2, 4)); got != identity.RolledBack {
		t.Errorf("after a restart of the guard: got %v", got)
	}
	g = identity.NewGuard(own, g.Seen(), identity.Rules{IgnoreLives: true})
	g.Configure(bound())
	if got, _ := meet(claim(2, 2, 4)); got != identity.Welcome {
		t.Errorf("rule broken: got %v", got)
	}
}

func TestGuard_Distrust_isForEver(t *testing.T) {
	g := identity.NewGuard(claim(1, 1, 1), nil, identity.Rules{})
	g.Configure(bound())
	c := claim(2, 2, 4)
	g.Meet(&c, identity.Dialled, identity.Speaker{})
	if !g.Distrust(2, storage(2)) || g.Distrust(2, storage(2)) {
		t.Error("distrust is news once")
	}
	g = identity.NewGuard(claim(1, 1, 2), g.Seen(), identity.Rules{})
	g.Configure(bound())
	c = claim(2, 2, 99)
	if refusal, _ := g.Meet(&c, identity.Dialled, identity.Speaker{}); refusal == nil || refusal.Reason != identity.RolledBack {
		t.Errorf("a later start of a distrusted directory: got %v", refusal)
	}
}

// Ensure that of two processes on copies of one directory the second is refused, with both addresses, and that a restart
// whose forerunner is silent is not.
func TestGuard_Meet_cloned(t *testing.T) {
	g := identity.NewGuard(claim(1, 1, 1), nil, identity.Rules{})
	g.Configure(bound())
	first, second := claim(2, 2, 4), claim(2, 2, 5)
	second.Address = "http://10.0.0.99:2380"
	g.Meet(&first, identity.Dialled, identity.Speaker{})
	refusal, _ := g.Meet(&second, identity.Dialled, identity.Speaker{Life: first.Life, Address: first.Address})
	if refusal == nil || refusal.Reason != identity.Cloned || !strings.Contains(refusal.Text, first.Address) ||
		!strings.Contains(refusal.Text, second.Address) {
		t.Errorf("got %v, want a refusal that names both addresses", refusal)
	}
	if refusal, _ := g.Meet(&first, identity.Dialled, identity.Speaker{Life: second.Life}); refusal != nil {
		t.Errorf("the first connects again: got %v", refusal)
	}
	if refusal, _ := g.Meet(&second, identity.Dialled, identity.Speaker{}); refusal != nil {
		t.Errorf("the first is silent: got %v", refusal)
	}
}

// Ensure that what unbound members say is not counted while others are bound, whatever kind of majority it adds to, and
// that what they ask passes.
func TestCounts_unbound(t *testing.T) {
	config := &consensus.Config{Voters: []consensus.MemberID{1, 2, 3}, Members: bound(3)}
	open := &consensus.Config{Members: bound(1, 2, 3)}
	counted := []consensus.MessageKind{consensus.MsgPreVoteReply, consensus.MsgVoteReply, consensus.MsgAppendReply,
		consensus.MsgHeartbeatReply, consensus.MsgSnapshotReply, consensus.MsgAcknowledged, consensus.MsgRead, consensus.MsgLogQueryReply,
		consensus.MsgRecorded, consensus.MsgFast}
	for kind := consensus.MsgPreVote; kind <= consensus.MsgOrphans; kind++ {
		from := func(id consensus.MemberID) *consensus.Message { return &consensus.Message{Kind: kind, From: id} }
		if !identity.Counts(config, from(2), storage(2), identity.Rules{}) {
			t.Errorf("kind %d of a bound member does not count", kind)
		}
		if identity.Counts(config, from(2), storage(9), identity.Rules{}) {
			t.Errorf("kind %d of another data directory counts", kind)
		}
		if !identity.Counts(config, from(2), storage(9), identity.Rules{IgnoreBinding: true}) {
			t.Errorf("kind %d of another data directory does not count although the rule is broken", kind)
		}
		if got, want := identity.Counts(config, from(3), storage(3), identity.Rules{}), !slices.Contains(counted, kind); got != want {
			t.Errorf("kind %d of an unbound member: got %v, want %v", kind, got, want)
		}
		if !identity.Counts(config, from(3), storage(3), identity.Rules{CountUnbound: true}) {
			t.Errorf("kind %d of an unbound member does not count although the rule is broken", kind)
		}
		learner := &consensus.Config{Voters: []consensus.MemberID{1, 2}, Members: bound(3)}
		want := kind == consensus.MsgRead || !slices.Contains(counted, kind)
		if got := identity.Counts(learner, from(3), storage(3), identity.Rules{}); got != want {
			t.Errorf("kind %d of an unbound learner: got %v, want %v", kind, got, want)
		}
		if !identity.Counts(open, from(3), storage(3), identity.Rules{}) {
			t.Errorf("kind %d does not count where nobody is bound", kind)
		}
	}
}

// Ensure that non-members cannot make a member remember without bound, and that it forgets no member that it is bound to know.
func TestGuard_Seen_bounded(t *testing.T) {
	g := identity.NewGuard(claim(1, 1, 1), nil, identity.Rules{})
	g.Configure(bound(3))
	own := claim(2, 2, 7)
	g.Meet(&own, identity.Dialled, identity.Speaker{})
	for n := range 1000 {
		c := claim(3, 0, 1)
		c.Storage = consensus.StorageID{0xee, byte(n), byte(n >> 8)}
		g.Meet(&c, identity.Dialled, identity.Speaker{})
	}
	seen := g.Seen()
	if len(seen) > 64 || !slices.ContainsFunc(seen, func(s identity.Seen) bool { return s.Life == own.Life }) {
		t.Errorf("%d directories are remembered, the bound member's among them: %v", len(seen), seen)
	}
}

// Ensure that a life whose memory did not reach the disk asks for it again, and is not believed from memory alone.
func TestGuard_Meet_unsaved(t *testing.T) {
	g := identity.NewGuard(claim(1, 1, 1), nil, identity.Rules{})
	g.Configure(bound(2, 3))
	own := claim(2, 2, 7)
	for range 2 {
		if refusal, remember := g.Meet(&own, identity.Dialled, identity.Speaker{}); refusal != nil || !remember {
			t.Fatalf("got %v and remember %t, want it to be remembered until it is saved", refusal, remember)
		}
	}
	g.Saved()
	if refusal, remember := g.Meet(&own, identity.Dialled, identity.Speaker{}); refusal != nil || remember {
		t.Errorf("got %v and remember %t after it was saved", refusal, remember)
	}
}

// Ensure that a refusal is final where the data directory can never be that member's again, and nowhere else: a process that is told
// so stops for good, and one that is not asks again.
func TestReason_Final(t *testing.T) {
	final := []identity.Reason{identity.LostDisk, identity.RolledBack, identity.Cloned}
	for r := identity.Welcome; int(r) < identity.Reasons; r++ {
		if got := r.Final(); got != slices.Contains(final, r) {
			t.Errorf("%v: final %t", r, got)
		}
	}
}

// Ensure that a life of which there is no evidence is welcome and no more: nothing of it is remembered, none that is proved is
// refused because of it.
func TestGuard_Meet_said(t *testing.T) {
	g := identity.NewGuard(claim(1, 1, 1), nil, identity.Rules{})
	g.Configure(bound())
	speaks := func(c identity.Claim) identity.Speaker { return identity.Speaker{Life: c.Life} }
	first, next, other, far := claim(2, 2, 4), claim(2, 2, 5), claim(2, 2, 5), claim(2, 2, 1<<60)
	other.Life.Nonce++
	for _, row := range []struct {
		name     string
		claim    identity.Claim
		evidence identity.Evidence
		speaker  identity.Speaker
		want     identity.Reason
		remember bool
		proved   bool
	}{
		{"nothing is known", far, identity.Said, identity.Speaker{}, identity.Welcome, false, false},
		{"nor of this one", first, identity.Said, identity.Speaker{}, identity.Welcome, false, false},
		{"it answers", first, identity.Dialled, identity.Speaker{}, identity.Welcome, true, true},
		{"the member comes in", first, identity.Said, identity.Speaker{}, identity.Welcome, false, true},
		{"beside the member", far, identity.Said, speaks(first), identity.Cloned, false, false},
		{"the member is silent", far, identity.Said, identity.Speaker{}, identity.Welcome, false, false},
		{"the member starts again", next, identity.Said, identity.Speaker{}, identity.Welcome, false, false},
		{"and answers", next, identity.Dialled, identity.Speaker{}, identity.Welcome, true, true},
		{"who said its number", other, identity.Said, identity.Speaker{}, identity.RolledBack, false, false},
		{"the start before", first, identity.Dialled, identity.Speaker{}, identity.RolledBack, false, false},
		{"a certificate", far, identity.Certified, identity.Speaker{}, identity.Welcome, true, true},
	} {
		refusal, remember := g.Meet(&row.claim, row.evidence, row.speaker)
		got := identity.Welcome
		if refusal != nil {
			got = refusal.Reason
		}
		if got != row.want || remember != row.remember || g.Proved(&row.claim) != row.proved {
			t.Errorf("%s: got %v, remember %t, proved %t; want %v, %t, %t", row.name, got, remember, g.Proved(&row.claim), row.want,
				row.remember, row.proved)
		}
		g.Saved()
	}
	if seen := g.Seen(); len(seen) != 1 || seen[0].Life != far.Life {
		t.Errorf("%v is remembered", seen)
	}
}

// Ensure that the line to type names a member which the configuration does not know, or does not yet.
func TestGuard_Meet_rolledBackUnknown(t *testing.T) {
	g := identity.NewGuard(claim(1, 1, 1), []identity.Seen{{Member: 9, Storage: storage(9), Life: consensus.Life{Boots: 5}}},
		identity.Rules{})
	c := claim(9, 9, 3)
	refusal, _ := g.Meet(&c, identity.Dialled, identity.Speaker{})
	if want := "member reset " + consensus.MemberID(9).String(); refusal == nil || !strings.Contains(refusal.Text, want) {
		t.Errorf("got %v, want a text with %q", refusal, want)
	}
}
