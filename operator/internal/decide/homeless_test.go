package decide_test

import (
	"strings"
	"testing"
	"time"

	"github.com/quorate/quorate/operator/internal/decide"
)

// Ensure that newcomers are not made without end where no node takes one, as with podAntiAffinity: Required, that the cause is told, and
// that the claim of one which no process had is not kept.
func TestNext_homelessNewcomer(t *testing.T) {
	const made = "m4 is a newcomer"
	asks := func(o *decide.Observed) { // a job adds m4 in the place of m3, whose node is lost
		down(o, 0, time.Hour)
		o.Pods[0].NodeLost, o.Pods[0].Stuck = true, time.Hour
		o.Want.KeepClaims = true
		o.Claims = append(o.Claims, decide.Claim{Member: "m4", Serial: 4, Bytes: 1, Used: true, Empty: true, Epoch: decide.ParseEpoch("0")})
		o.Pods = append(o.Pods, decide.Pod{Member: "m4", Template: "a", Homeless: true, Stuck: 20 * time.Minute, Waits: "0/3 nodes"})
		o.Cluster.Members = append(o.Cluster.Members, decide.Member{ID: 4, Name: "m4", Joining: true, Silent: time.Hour})
		o.Cluster.Jobs = []decide.Job{{ID: 9, Quiet: time.Hour, Adds: []string{"m4"}, Removes: []uint64{3}, What: made}}
	}
	taken := func(o *decide.Observed) { // back by the cluster
		asks(o)
		o.Cluster.Members, o.Cluster.Jobs = o.Cluster.Members[:3], nil
		o.Claims[3].Removed = true
	}
	for _, row := range []struct {
		name string
		set  func(o *decide.Observed)
		kind decide.Kind
		who  string
		why  string
	}{
		{"its job goes on", asks, decide.Wait, "", made + ". m4: no node takes its pod: 0/3 nodes"},
		{"one that had started, and has no node any more", func(o *decide.Observed) {
			asks(o)
			o.Cluster.Members[3].Started = true
		}, decide.Cancel, "m4", "no node takes it"},
		{"the job has ended: no other one is made", taken, decide.Wait, "",
			"no node takes a newcomer: make room, or take podAntiAffinity: Required out. m4: 0/3 nodes"},
		{"a node takes it", func(o *decide.Observed) {
			taken(o)
			o.Pods[3].Homeless, o.Claims[3].Empty = false, false
		}, decide.DeletePod, "m4", "no member any more"},
		{"the spec changed: its claim goes first, though claims are kept", func(o *decide.Observed) {
			taken(o)
			o.Want.Template = "b"
		}, decide.DeleteClaim, "m4", "no node has taken it"},
		{"the spec changed, and its claim goes", func(o *decide.Observed) {
			taken(o)
			o.Want.Template, o.Claims[3].Leaving = "b", true
		}, decide.DeletePod, "m4", "no member any more"},
		{"it was long ago", func(o *decide.Observed) {
			taken(o)
			o.Pods[3].Stuck = 2 * time.Hour
		}, decide.DeleteClaim, "m4", "no node has taken it"},
		{"it was long ago, and its claim has a volume, which is kept", func(o *decide.Observed) {
			taken(o)
			o.Pods[3].Stuck, o.Claims[3].Empty = 2*time.Hour, false
		}, decide.DeletePod, "m4", "no member any more"},
		{"the lost member is back", func(o *decide.Observed) {
			o.Want.KeepClaims = true
			was := *o.Cluster
			was.Members = append([]decide.Member{}, o.Cluster.Members...)
			pod := o.Pods[0]
			taken(o)
			o.Cluster, o.Pods[0] = &was, pod
		}, decide.DeleteClaim, "m4", "no member needs it"},
	} {
		t.Run(row.name, func(t *testing.T) {
			o := three()
			row.set(o)
			a := decide.Next(o)
			if a.Kind != row.kind || a.Member != row.who || !strings.Contains(a.Why, row.why) {
				t.Errorf("got %q (%s), want %s %s …%s…", a, a.Kind, row.kind, row.who, row.why)
			}
		})
	}
}
