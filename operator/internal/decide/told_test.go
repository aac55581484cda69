package decide_test

import (
	"strings"
	"testing"
	"time"

	"github.com/quorate/quorate/operator/internal/decide"
)

// Ensure that a word of equal standing about the cluster holds up what destroys, and says who tells what; and that no other one does: of a
// leader that others have left, of a member that has not heard that it was removed, or of members that a recovery left out.
func TestNext_contradicted(t *testing.T) {
	members := func(voters ...string) (all []decide.Member) {
		for _, name := range voters {
			all = append(all, decide.Member{ID: uint64(name[1] - '0'), Name: name, Voter: true})
		}
		return all
	}
	tells := func(o *decide.Observed, by, leader string, voters ...string) {
		o.Cluster.Others = append(o.Cluster.Others, decide.Told{Member: by, Leader: uint64(leader[1] - '0'), Members: members(voters...)})
	}
	for _, row := range []struct {
		name string
		set  func(o *decide.Observed)
		held bool
	}{
		{"nobody says anything else", func(*decide.Observed) {}, false},
		{"the one that votes alone is contradicted", func(o *decide.Observed) {
			tells(o, "m2", "m2", "m1", "m2", "m3")
			tells(o, "m3", "m2", "m1", "m2", "m3")
		}, true},
		{"by one", func(o *decide.Observed) { tells(o, "m3", "m2", "m1", "m2", "m3") }, true},
		{"one that has not heard, and most of its voters have", func(o *decide.Observed) {
			o.Cluster.Members = append(o.Cluster.Members, members("m2")...)
			tells(o, "m2", "m1", "m1", "m2")
			tells(o, "m3", "m3", "m1", "m2", "m3")
		}, false},
		{"those that a recovery left out", func(o *decide.Observed) {
			o.Kept.Dropped = []string{"m2", "m3"}
			tells(o, "m2", "m2", "m1", "m2", "m3")
		}, false},
		{"one whose claim tells that", func(o *decide.Observed) {
			o.Claims[1].LeftOut = true
			tells(o, o.Claims[1].Member, "m2", "m1", "m2", "m3")
		}, false},
	} {
		t.Run(row.name, func(t *testing.T) {
			o := three()
			for i := range o.Pods {
				o.Pods[i].Ready = false
			}
			o.Cluster.Members, o.Cluster.By, o.Cluster.Leader = nil, "m1", 1
			for _, m := range members("m1") {
				m.Active, m.CaughtUp, m.Leader = true, true, true
				o.Cluster.Members = append(o.Cluster.Members, m)
			}
			o.Want.Members = 1
			for i := range o.Claims {
				o.Claims[i].Used, o.Claims[i].Epoch = true, o.Cluster.Epoch
			}
			row.set(o)
			text := o.Contradicted()
			if (text != "") != row.held || row.held && (!strings.Contains(text, "m1 tells of [m1] with the leader m1") ||
				!strings.Contains(text, "tells of [m1 m2 m3] with the leader m2") || !strings.Contains(text, "quorate.io/leaves=m2,m3`")) {
				t.Errorf("told %q", text)
			}
			a := decide.Next(o)
			if row.held && (a.Kind != decide.Wait || a.Why != text) {
				t.Errorf("held: %v", a)
			}
		})
	}
}

// Ensure that nothing of a member which was removed goes while its node says that it serves, and that it does once that is over.
func TestNext_removedServes(t *testing.T) {
	o := three()
	gone := o.Cluster.Members[0].Name
	o.Cluster.Members, o.Want.Members = o.Cluster.Members[1:], 2
	for i := range o.Claims {
		o.Claims[i].Used, o.Claims[i].Epoch = true, decide.ParseEpoch("0")
	}
	o.Cluster.Epoch = decide.ParseEpoch("0")
	if a := decide.Next(o); a.Kind != decide.Wait || !strings.Contains(a.Why, gone+" serves, and is no member any more") {
		t.Errorf("while it serves: %v", a)
	}
	for i := range o.Pods {
		if o.Pods[i].Member == gone {
			o.Pods[i].NodeLost, o.Pods[i].Stuck = true, time.Minute
		}
	}
	if a := decide.Next(o); a.Kind != decide.NoteRemoved || a.Member != gone {
		t.Errorf("its node is lost: %v", a)
	}
	for i := range o.Pods {
		if o.Pods[i].Member == gone {
			o.Pods[i].NodeLost, o.Pods[i].Ready = false, false
		}
	}
	if a := decide.Next(o); a.Kind != decide.NoteRemoved || a.Member != gone {
		t.Errorf("it is not ready: %v", a)
	}
}
