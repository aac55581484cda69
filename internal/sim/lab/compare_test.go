package lab_test

import (
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/quorate/quorate/internal/sim/lab"
)

// compared are the trials, which take some seconds, played once for all tests.
var compared = sync.OnceValues(func() ([]lab.Trial, error) { return lab.Compare(0, 0) })

// Ensure the differences between the protocols: by joint-early a change is decided with its first entry, a round before it is
// settled; by joint both come with the second entry; single needs a round for each voter; and no law is broken.
func TestCompare(t *testing.T) {
	trials, err := compared()
	if err != nil {
		t.Fatal(err)
	}
	of := func(change string, dead bool, protocol string) lab.Trial {
		t.Helper()
		for i := range trials {
			if one := trials[i]; one.Change == change && one.Dead == dead && one.Protocol == protocol {
				return one
			}
		}
		t.Fatalf("nobody tried to %s by %s", change, protocol)
		return lab.Trial{}
	}
	for i := range trials {
		one := &trials[i]
		if one.Broken > 0 || one.Done < 0 || one.Settled < one.Done {
			t.Errorf("%+v", one)
		}
		joint, early := of(one.Change, one.Dead, "joint"), of(one.Change, one.Dead, "joint-early")
		if early.Done+0.5 > joint.Done || joint.Done != joint.Settled || early.Settled > joint.Settled+0.5 {
			t.Errorf("%s: joint %+v, joint-early %+v", one.Change, joint, early)
		}
	}
	leader, noticed := of("remove the leader of 5", false, lab.ProtocolSwitched), of("remove the leader of 5", false, "activate")
	if leader.Settled > noticed.Settled {
		t.Errorf("without the entry after it: %+v, with it: %+v", leader, noticed)
	}
	singly, jointly := of("replace all 3", false, "single"), of("replace all 3", false, "joint")
	if singly.Settled < jointly.Settled {
		t.Errorf("six single steps take %v rounds, one joint change %v", singly.Settled, jointly.Settled)
	}
}

// Ensure that the table and the picture in the documents are those of today's protocols.
func TestCompare_documented(t *testing.T) {
	trials, err := compared()
	if err != nil {
		t.Fatal(err)
	}
	var table, picture strings.Builder
	if err := lab.WriteTable(&table, trials); err != nil {
		t.Fatal(err)
	}
	if err := lab.Picture(&picture, trials); err != nil {
		t.Fatal(err)
	}
	const command = "run `quoratesim reconfig --compare --svg docs/pictures/protocols.svg` and put its table there"
	for file, want := range map[string]string{
		"../../../docs/membership.md": table.String(), "../../../docs/pictures/protocols.svg": picture.String(),
	} {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(content), want) {
			t.Errorf("%s is old: %s", file, command)
		}
	}
}
