package identity_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/identity"
)

func epoch(number uint64, recovery byte) consensus.Epoch {
	return consensus.Epoch{Number: number, Recovery: [16]byte{recovery}}
}

func ofEpoch(id consensus.MemberID, e consensus.Epoch) identity.Foreign {
	return identity.Foreign{Claim: identity.Claim{Cluster: 1, Member: id, Epoch: e, Address: "http://there"}, Name: "m9"}
}

func TestSuccession_State(t *testing.T) {
	for _, row := range []struct {
		name    string
		met     []consensus.Epoch
		looked  bool
		quorate bool
		want    identity.EpochState
	}{
		{name: "just started", want: identity.Looking},
		{name: "has looked", looked: true, want: identity.Sound},
		{name: "hears a leader before it has looked", quorate: true, want: identity.Sound},
		{name: "met a newer one", met: []consensus.Epoch{epoch(2, 1)}, looked: true, want: identity.Superseded},
		{name: "met a newer one while it looks", met: []consensus.Epoch{epoch(2, 1)}, want: identity.Superseded},
		{name: "met a newer one and has a quorum", met: []consensus.Epoch{epoch(2, 1)}, looked: true, quorate: true,
			want: identity.Contested},
		{name: "met a rival", met: []consensus.Epoch{epoch(1, 9)}, looked: true, want: identity.Contested},
		{name: "met an older one", met: []consensus.Epoch{epoch(0, 0)}, looked: true, want: identity.Contested},
		{name: "met an older one and a newer one", met: []consensus.Epoch{epoch(0, 0), epoch(3, 1)}, looked: true,
			want: identity.Superseded},
	} {
		s := identity.Succession{Own: epoch(1, 1)}
		for i, e := range row.met {
			s.Meet(ofEpoch(consensus.MemberID(i+2), e))
		}
		if row.looked {
			s.Look()
			s.Looked()
		}
		if got := s.State(row.quorate); got != row.want {
			t.Errorf("%s: got %d, want %d", row.name, got, row.want)
		}
		if stands := row.want == identity.Superseded; stands != (!row.quorate && s.WaysOut() != "") {
			t.Errorf("%s: ways out %q", row.name, s.WaysOut())
		}
	}
}

func TestSuccession_Looked_forgets(t *testing.T) {
	s := identity.Succession{Own: epoch(1, 1)}
	if !s.Meet(ofEpoch(2, epoch(0, 0))) || s.Meet(ofEpoch(2, epoch(0, 0))) || !s.Meet(ofEpoch(3, epoch(2, 0))) {
		t.Error("who is new is not told from who is known")
	}
	const rounds = 4 // for which one is remembered that is not met again
	for range rounds {
		s.Looked()
	}
	if left := s.Foreign(); len(left) != 2 {
		t.Errorf("after %d rounds only %v is left", rounds, left)
	}
	s.Looked()
	left := s.Foreign()
	if len(left) != 1 || left[0].Member != 3 {
		t.Errorf("got %v, want only the one of the newer epoch to be remembered", left)
	}
	for id := range consensus.MemberID(1000) {
		s.Meet(ofEpoch(id+10, epoch(0, 0)))
	}
	if n := len(s.Foreign()); n > 64 {
		t.Errorf("%d are remembered: there is no bound", n)
	}
}

func TestSuccession_Alarm_names(t *testing.T) {
	s := identity.Succession{Own: epoch(1, 1)}
	for e, want := range map[consensus.Epoch]string{
		epoch(1, 2): "recovered apart", epoch(2, 1): "was recovered without this member", epoch(0, 0): "before this cluster " +
			"was",
	} {
		f := ofEpoch(7, e)
		text := s.Alarm(&f)
		for _, part := range []string{want, "m9", f.Member.String(), "http://there", e.String(), s.Own.String()} {
			if !strings.Contains(text, part) {
				t.Errorf("epoch %v: no %q in %q", e, part, text)
			}
		}
		// A directory that may hold the only copy of a write is kept, and the text says so before it has anything stopped or
		// emptied.
		keep := strings.Index(text, "empty and delete no data directory")
		if e.Number > s.Own.Number {
			keep = strings.Index(text, "keep all data directories as they are")
		}
		for _, later := range []string{"stop ", "empty one", "empty directories", "--join"} {
			if at := strings.Index(text, later); keep < 0 || at >= 0 && at < keep {
				t.Errorf("epoch %v: %q comes before it is said to keep the data, in %q", e, later, text)
			}
		}
	}
}

// oldMember is one of a cluster of five whose first two members were recovered: the old ones are 2, 3, 4.
type oldMember struct {
	s      identity.Succession
	met    bool // the recovered one, in this life, while it had no quorum
	leader bool // it hears one
}

// Ensure that no member that met the recovered one before it had a quorum helps to elect an old leader, in whatever order the
// old ones start, look, meet, and vote; and that without the rule one does.
func TestSuccession_walk(t *testing.T) {
	if broken := walkSuccessions(t, identity.Rules{}); broken != 0 {
		t.Errorf("%d elections with the vote of a member that had met the recovered one", broken)
	}
	if walkSuccessions(t, identity.Rules{ServeSuperseded: true}) == 0 {
		t.Error("without the rule nothing breaks: the walk shows nothing")
	}
}

func walkSuccessions(t *testing.T, rules identity.Rules) (broken int) {
	t.Helper()
	elected := 0
	for seed := range uint64(2000) {
		rng := rand.New(rand.NewPCG(seed, 7))
		var old [3]oldMember
		restart := func(i int) { old[i] = oldMember{s: identity.Succession{Own: epoch(0, 0), Rules: rules}} }
		for i := range old {
			restart(i)
		}
		for range 40 {
			i := rng.IntN(len(old))
			m := &old[i]
			switch rng.IntN(5) {
			case 0:
				restart(i)
			case 1:
				m.s.Look()
				m.s.Looked()
			case 2:
				m.s.Meet(ofEpoch(1, epoch(1, 5)))
				m.met = m.met || !m.leader
			default:
				if elect(old[:]) {
					elected++
					broken += met(old[:])
				}
			}
		}
	}
	if elected == 0 {
		t.Fatal("nobody was ever elected: the walk shows nothing")
	}
	return broken
}

// elect lets all vote that may; all three are the majority of five.
func elect(old []oldMember) bool {
	for i := range old {
		if state := old[i].s.State(old[i].leader); state == identity.Looking || state == identity.Superseded {
			return false
		}
	}
	for i := range old {
		old[i].leader = true
	}
	return true
}

func met(old []oldMember) int {
	for i := range old {
		if old[i].met {
			return 1
		}
	}
	return 0
}

// Ensure that a majority that serves goes on, whichever member was recovered apart from it and in whatever order its members
// start, look and meet that one; and that without the rule it stops. This is not drawn: every sequence of four moves is tried.
func TestSuccession_walk_majorityServes(t *testing.T) {
	if stopped, plays := majorityServes(identity.Rules{}); stopped != "" {
		t.Errorf("%s, after %d sequences", stopped, plays)
	} else {
		t.Logf("%d sequences, and the majority serves", plays)
	}
	stopped, plays := majorityServes(identity.Rules{ObeyNewer: true})
	if stopped == "" {
		t.Error("without the rule nothing breaks: the walk shows nothing")
	}
	t.Logf("without the rule, after %d sequences: %s", plays, stopped)
}

// majorityServes tries all sequences of what three members of five may meet while a quorum of them serves.
func majorityServes(rules identity.Rules) (stopped string, plays int) {
	const members, depth = 3, 4
	moves := []struct {
		name string
		do   func(m *oldMember)
	}{
		{"looks", func(m *oldMember) { m.s.Look(); m.s.Looked() }},
		{"meets the recovered one", func(m *oldMember) { m.s.Meet(ofEpoch(1, epoch(1, 5))) }},
		{"meets another that was recovered", func(m *oldMember) { m.s.Meet(ofEpoch(5, epoch(2, 6))) }},
	}
	total := 1
	for range depth {
		total *= members * len(moves)
	}
	for path := range total {
		old := [members]oldMember{}
		for i := range old {
			old[i] = oldMember{s: identity.Succession{Own: epoch(0, 0), Rules: rules}, leader: true}
		}
		plays++
		var how []string
		for rest, at := path, 0; at < depth; at++ {
			choice := rest % (members * len(moves))
			rest /= members * len(moves)
			i, move := choice%members, &moves[choice/members]
			move.do(&old[i])
			how = append(how, fmt.Sprintf("member %d %s", i+2, move.name))
			if state := old[i].s.State(true); state == identity.Looking || state == identity.Superseded {
				return fmt.Sprintf("member %d of a majority that serves stops: %s", i+2, strings.Join(how, ", ")), plays
			}
		}
	}
	return "", plays
}
