package joint_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/quorate/quorate/internal/model/joint"
)

var (
	old    = []int{0, 1, 2}
	third  = []int{0, 1, 3} // one voter is replaced
	most   = []int{0, 3, 4} // two of three voters are replaced
	couple = []int{0, 1}
	other  = []int{0, 2}
)

// Ensure that the shipped protocols keep every law in all states of a bound, with one election after the first.
func TestRun_holds(t *testing.T) {
	for _, c := range []struct {
		protocol joint.Protocol
		back     joint.Way
		old, new []int
	}{
		{joint.Joint, joint.Committed, old, third},
		{joint.JointEarly, joint.Committed, old, third},
		{joint.Activate, joint.NoWay, couple, other},
		{joint.Apply, joint.NoWay, couple, other},
	} {
		r, err := joint.Run(joint.Search{Protocol: c.protocol, Back: c.back, Old: c.old, New: c.new, Campaigns: 1})
		if err != nil || r.Broken != "" || !r.Complete || r.States < 1000 {
			t.Errorf("%s, way back %s, %v to %v: got %v, %v; want every law to hold in all states", c.protocol, c.back, c.old,
				c.new, r, err)
		}
		t.Logf("%s, way back %s, %v to %v: %v", c.protocol, c.back, c.old, c.new, r)
	}
}

// Ensure that the laws break for the wrong variants: the checks detect it.
func TestRun_breaks(t *testing.T) {
	for _, c := range []struct {
		protocol joint.Protocol
		back     joint.Way
		law      string
	}{
		{joint.Direct, joint.NoWay, "leader completeness"},
		{joint.JointEarly, joint.AnyLeader, "decided stays decided"},
		{joint.JointEarly, joint.OldElects, "leader completeness"},
		{joint.Joint, joint.OldElects, "leader completeness"},
	} {
		r, err := joint.Run(joint.Search{Protocol: c.protocol, Back: c.back, Old: old, New: third, Campaigns: 1})
		if err != nil || !strings.HasPrefix(r.Broken, c.law) || len(r.Steps) == 0 {
			t.Errorf("%s, way back %s: got %v, %v; want that %s breaks", c.protocol, c.back, r, err, c.law)
		}
		t.Logf("%s, way back %s: %v", c.protocol, c.back, r)
	}
}

// Ensure that with joint, too, a new leader that has committed nothing must not take a change back: the leader before it may
// have logged C(new), and may be elected again by members without that entry. It takes two elections, beyond what a test can
// search.
func TestPlay_anyLeader(t *testing.T) {
	steps := []string{
		"A logs C(old,new)", "B receives the log of term 1 up to 2", "D receives the log of term 1 up to 2", "A commits",
		"A logs C(new), or that it is in force",
		"B stands in term 2", "C votes for B", "D votes for B", "E votes for B", "B leads",
		"B logs C(old): the change is taken back", "C receives the log of term 2 up to 4", "B commits",
		"A stands in term 3", "D votes for A", "A leads",
	}
	search := joint.Search{Protocol: joint.Joint, Back: joint.AnyLeader, Old: old, New: most, Campaigns: 2}
	r, err := joint.Play(search, steps)
	if err != nil || !strings.HasPrefix(r.Broken, "leader completeness") {
		t.Errorf("got %v, %v; want that leader completeness breaks", r, err)
	}
	search.Back = joint.Committed
	if _, err = joint.Play(search, steps); err == nil || !strings.Contains(err.Error(), "taken back") {
		t.Errorf("by the rule that ships: got %v, want that the change is not taken back", err)
	}
	search.Back, search.Protocol = joint.Unseen, joint.Joint
	if _, err = joint.Play(search, steps); err == nil || !strings.Contains(err.Error(), "taken back") {
		t.Errorf("where voters show it: got %v, want that the change is not taken back", err)
	}
	// If the voters show it, because D and E have no entry of the change, the earlier leader cannot have logged C(new).
	steps = slices.Concat(steps[:2], steps[5:11])
	if r, err = joint.Play(search, append(steps, "E receives the log of term 2 up to 4")); err != nil || r.Broken != "" {
		t.Errorf("where voters show it: got %v, %v; want that the change is taken back", r, err)
	}
}

// Ensure the results of ADR 63 on activate with no entry after it: a preference for switched members can leave members that
// cannot elect a leader, before members are switched off and afterwards. With the entry after it, or with votes that carry the
// commit index, there are no such states.
func TestRun_switchedOff(t *testing.T) {
	for _, c := range []struct {
		protocol joint.Protocol
		old, new []int
		broken   string
		steps    int
	}{
		{joint.Switched, couple, []int{1, 2}, "a leader can be elected: all members are up", 5},
		{joint.Switched, old, most, "a leader can be elected: of D, E", 9},
		{joint.SwitchedNew, couple, []int{1, 2}, "a leader can be elected: all members are up", 6},
		{joint.SwitchedNew, old, most, "a leader can be elected: of D, E", 9},
		{joint.SwitchedTold, couple, []int{1, 2}, "", 0},
		{joint.SwitchedTold, old, most, "", 0},
		{joint.Activate, couple, []int{1, 2}, "", 0},
		{joint.Activate, couple, other, "", 0},
	} {
		r, err := joint.Run(joint.Search{
			Protocol: c.protocol, Back: joint.NoWay, Old: c.old, New: c.new, SwitchOff: true, OnlyVotersStand: true,
		})
		if err != nil || !strings.HasPrefix(r.Broken, c.broken) || (r.Broken == "") != (c.broken == "") ||
			len(r.Steps) != c.steps || c.broken == "" && !r.Complete {
			t.Errorf("%s: got %v, %v; want %q after %d steps", c.protocol, r, err, c.broken, c.steps)
		}
		t.Logf("%s: %v", c.protocol, r)
	}
}

// Ensure that a majority of the old voters with a majority of the new ones can elect a leader at any time, because any member
// may stand whose log the others need; and that this rule is needed: a newcomer may have the best log, which does not say that
// it is a voter (ADR 66).
func TestRun_alive(t *testing.T) {
	for _, c := range []struct {
		protocol joint.Protocol
		back     joint.Way
		old, new []int
	}{
		{joint.Joint, joint.Committed, old, third},
		{joint.JointEarly, joint.Committed, old, third},
		{joint.Activate, joint.NoWay, couple, other},
	} {
		search := joint.Search{Protocol: c.protocol, Back: c.back, Old: c.old, New: c.new, Campaigns: 1, Alive: true}
		r, err := joint.Run(search)
		if err != nil || r.Broken != "" || !r.Complete || r.States < 1000 {
			t.Errorf("%s: got %v, %v; want that somebody can be elected in all states", c.protocol, r, err)
		}
		if c.back == joint.NoWay {
			continue
		}
		search.OnlyVotersStand = true
		r, err = joint.Run(search)
		if err != nil || !strings.HasPrefix(r.Broken, "a leader can be elected: B, C, D") || len(r.Steps) != 4 {
			t.Errorf("%s, where voters stand alone: got %v, %v; want that nobody can be elected", c.protocol, r, err)
		}
	}
}

// Ensure that an invalid search is an error.
func TestRun_refused(t *testing.T) {
	for _, o := range []joint.Search{
		{Protocol: "raft", Back: joint.NoWay, Old: old, New: third},
		{Protocol: joint.Joint, Back: "home", Old: old, New: third},
		{Protocol: joint.Joint, Back: joint.NoWay, Old: []int{1}, New: third},
		{Protocol: joint.Joint, Back: joint.NoWay, Old: old, New: []int{7}},
		{Protocol: joint.Joint, Back: joint.NoWay, Old: old, New: third, Campaigns: 9},
		{Protocol: joint.Joint, Back: joint.NoWay, Old: old, New: third, SwitchOff: true},
	} {
		if _, err := joint.Run(o); err == nil {
			t.Errorf("%+v is taken", o)
		}
	}
}
