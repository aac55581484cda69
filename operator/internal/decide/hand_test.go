package decide_test

import (
	"fmt"
	"testing"

	"github.com/quorate/quorate/operator/internal/decide"
)

// Ensure that a survivor that was recovered by hand during a pause, as the page says, with a note on its claim, starts before all others:
// voters that were lost and come back meanwhile would lead, and then give way to its epoch, with what they acknowledged. So it is whatever
// the status tells of the loss and of a recovery.
func TestNext_recoveredByHand(t *testing.T) {
	for name, kept := range map[string]*decide.Recovery{"no recovery": nil,
		"one that was ended":    {Survivor: "c-3", Failed: "spec.paused is set"},
		"one of another member": {Survivor: "c-1", Done: true}} {
		for i := range 4 {
			works, leftOut := i&1 == 0, i&2 == 0 // also a claim that was left out after a former recovery
			t.Run(fmt.Sprintf("%s, the command ends well: %v, left out before: %v", name, works, leftOut), func(t *testing.T) {
				w := begun(t)
				lost, survivor := w.loseTwo()
				w.want.Paused, w.kept.Recovery = true, kept
				for pod := range w.pods { // by kubectl delete pod
					delete(w.pods, pod)
				}
				w.claims[survivor].Leaves, w.claims[survivor].LeftOut = lost, leftOut
				if works {
					w.recovered(survivor)
				}
				w.lose([4]bool{})
				if a := decide.Next(w.observe()); a.Kind != decide.Wait {
					t.Fatalf("during the pause: %v", a)
				}
				w.want.Paused = false
				for range 200 {
					a := decide.Next(w.observe())
					if a.Kind == decide.CreatePod && a.Member != survivor && w.pods[survivor] == nil {
						t.Fatalf("before the survivor: %v", a)
					}
					w.act(a)
					w.advance()
					if w.fault != "" {
						t.Fatal(w.fault)
					}
				}
				if w.working() != 3 || !w.voters[survivor] || w.voters[lost[0]] == works || w.claims[lost[0]] == nil ||
					len(w.claims[survivor].Leaves) > 0 || w.claims[survivor].LeftOut {
					t.Errorf("voters %v, of which %d work, claims %v; %+v", w.voters, w.working(), sorted(w.claims), w.claims[survivor])
				}
			})
		}
	}
}
