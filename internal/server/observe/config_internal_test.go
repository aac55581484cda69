package observe

import (
	"testing"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/kv/apply"
	"github.com/quorate/quorate/internal/storage/engine"
)

// Ensure that a member tells both sets of a joint configuration, and which voter becomes a learner.
func TestConfigOf_joint(t *testing.T) {
	eng, err := engine.Open(engine.Options{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer eng.Close()
	if err := apply.Bootstrap(eng, 1, consensus.Config{}); err != nil {
		t.Fatal(err)
	}
	machine, err := apply.Open(eng, apply.Options{})
	if err != nil {
		t.Fatal(err)
	}
	ids := func(list ...consensus.MemberID) []consensus.MemberID { return list }
	c := &consensus.Config{Voters: ids(2, 3), Outgoing: ids(1, 2, 4), LearnersNext: ids(4), Learners: ids(5)}
	for id := consensus.MemberID(1); id <= 5; id++ {
		c.Members = append(c.Members, consensus.Member{ID: id})
	}
	got := configOf(machine, c)
	text := ""
	for _, m := range got.GetMembers() {
		for _, is := range []struct {
			bool
			letter string
		}{{m.GetVoter(), "v"}, {m.GetOutgoing(), "o"}, {m.GetDemoting(), "d"}} {
			if is.bool {
				text += is.letter
			}
		}
		text += " "
	}
	if want := "o vo v od  "; text != want || !got.GetJoint() {
		t.Errorf("got %q, joint %v; want %q", text, got.GetJoint(), want)
	}
}
