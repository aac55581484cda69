package decide_test

import (
	"strings"
	"testing"
	"time"

	"github.com/quorate/quorate/operator/internal/decide"
)

// noted is a cluster of three that leads, while a command of a recovery that would leave m2 and m3 out runs on the claim of m1.
func noted() *decide.Observed {
	o := three()
	o.Claims[2].Leaves = []string{"m2", "m3"}
	o.Pods[2] = decide.Pod{Member: "m1", Name: "m1-recover", Recovers: true, Template: "a", Running: true, Started: true}
	down(o, 2, time.Second)
	o.Pods[2].Running = true
	o.Kept.Recovery = &decide.Recovery{Survivor: "m1", Stopping: true, Leaves: []string{"m2", "m3"}}
	return o
}

// Ensure that a leader beside a command is noted on the survivor's claim at once, whatever the status says, and that the pod of a
// command on a claim which is used no more is ended, and holds up nothing else.
func TestNext_leftOut(t *testing.T) {
	for _, row := range []struct {
		name string
		set  func(o *decide.Observed)
		kind decide.Kind
		why  string
	}{
		{"a leader answers", func(*decide.Observed) {}, decide.LeaveOut, "a leader answers without it"},
		{"a leader answers, and the status was wiped", func(o *decide.Observed) { o.Kept = decide.Kept{Founded: true} },
			decide.LeaveOut, "a leader answers without it"},
		{"a leader answers, the status says so, and the claim's patch was refused", func(o *decide.Observed) {
			o.Kept.Recovery.Failed = "a leader answers"
		}, decide.LeaveOut, "a leader answers without it"},
		{"a leader answers, and no node has taken the command", func(o *decide.Observed) {
			o.Kept, o.Pods[2].Homeless, o.Pods[2].Started = decide.Kept{Founded: true}, true, false
		}, decide.EndRecovery, "the recovery has ended"},
	} {
		t.Run(row.name, func(t *testing.T) {
			o := noted()
			row.set(o)
			if a := decide.Next(o); a.Kind != row.kind || !strings.Contains(a.String(), row.why) {
				t.Errorf("got %q (%s), want %s …%s…", a, a.Kind, row.kind, row.why)
			}
		})
	}
}
