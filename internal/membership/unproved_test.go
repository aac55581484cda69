package membership_test

import (
	"testing"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/membership"
)

// Ensure that the place of a voter is given away only if it is known to be lost, or for a reason: silence is none.
func TestUnproved(t *testing.T) {
	const place = "http://two:2380"
	for _, row := range []struct {
		name, state, force, url string
		learner                 bool
		faults                  membership.Faults
		want                    int
	}{
		{name: "it is silent", url: place, want: 1},
		{name: "it is silent, and somebody gives a reason", url: place, force: "it burned"},
		{name: "it lost its disk", url: place, state: membership.LostItsDisk},
		{name: "it was rolled back", url: place, state: membership.RolledBack},
		{name: "it is corrupt", url: place, state: membership.MarkedCorrupt},
		{name: "another history is at its address", url: place, state: membership.OtherHistory, want: 1},
		{name: "its successor is elsewhere, and catches up first", url: "http://nine:2380"},
		{name: "it is a learner", url: place, learner: true},
		{name: "without the rule", url: place, faults: membership.Faults{ResetTheSilent: true}},
	} {
		view := membership.View{
			Config: consensus.Config{
				Voters: []consensus.MemberID{1, 2, 3}, Members: []consensus.Member{{ID: 1}, {ID: 2, PeerURLs: []string{place}}, {ID: 3}},
			},
			Members: []membership.MemberView{{ID: 1, Active: true}, {ID: 2, Name: "m2", State: row.state}, {ID: 3, Active: true}},
			Faults:  row.faults,
		}
		if row.learner {
			view.Config.Voters, view.Config.Learners = []consensus.MemberID{1, 3}, []consensus.MemberID{2}
		}
		spec := membership.Spec{
			Kind: membership.KindReplace, Remove: []consensus.MemberID{2}, Force: row.force,
			Add: []membership.Newcomer{{ID: 9, Name: "m2", PeerURLs: []string{row.url}}},
		}
		if got := membership.Unproved(&spec, &view); len(got) != row.want {
			t.Errorf("%s: blocked by %q, want %d", row.name, got, row.want)
		}
	}
}
