package decide_test

import (
	"flag"
	"slices"
	"strings"
	"testing"

	"github.com/quorate/quorate/operator/internal/decide"
)

var seeds = flag.Int("seeds", 400, "worlds that TestNext_random plays")

// Ensure that no action breaks a law whatever goes wrong, that actions may be lost or done twice, and that the cluster is as it
// is wanted once nothing goes wrong any more.
func TestNext_random(t *testing.T) {
	kinds := map[decide.Kind]int{}
	paused := 0
	for seed := range *seeds {
		w := newWorld(uint64(seed), 1+2*(seed%3))
		w.broken = "bad"
		var log []string
		step := func() decide.Action {
			a := decide.Next(w.observe())
			kinds[a.Kind]++
			if strings.Contains(a.Why, "The next step would be") {
				paused++
			}
			if a.Kind != decide.Wait {
				log = append(log, a.String())
			}
			if w.rand.IntN(8) > 0 { // else the operator dies before it
				w.act(a)
			}
			w.advance()
			if w.fault != "" {
				t.Fatalf("seed %d: %s\n%q", seed, w.fault, log)
			}
			return a
		}
		for range 300 {
			if w.rand.IntN(5) == 0 {
				w.disturb()
			}
			step()
		}
		w.lost, w.drain, w.want.Members, w.want.Paused = [4]bool{}, [4]bool{}, max(3, w.want.Members), false
		if w.want.Template == "bad" {
			w.want.Template = "a"
		}
		var last decide.Action
		for range 400 {
			last = step()
		}
		if last.Kind != decide.Wait || last.Why != "" || !w.asWanted() {
			t.Fatalf("seed %d: after calm: %v; voters %v, claims %v, pods %v, cordoned %v\n%q", seed, last, w.voters,
				sorted(w.claims), sorted(w.pods), w.cordoned, log)
		}
	}
	for _, kind := range []decide.Kind{decide.Add, decide.Remove, decide.Replace, decide.Cordon, decide.Uncordon, decide.Cancel,
		decide.DeletePod, decide.DeleteClaim, decide.ResizeClaim} {
		if kinds[kind] == 0 {
			t.Errorf("no world has seen %s", kind)
		}
	}
	if paused == 0 {
		t.Error("no step was held up by a pause")
	}
}

// asWanted tells whether members, pods and claims are those that are wanted, and all work.
func (w *world) asWanted() bool {
	if len(w.voters) != w.want.Members || w.working() != len(w.voters) || len(w.learners) > 0 {
		return false
	}
	names := sorted(w.voters)
	claims := slices.DeleteFunc(sorted(w.claims), func(name string) bool { // removed before any leader was seen to name it: it stays
		return w.claims[name].Epoch.Name == "" && w.claims[name].Used && !w.voters[name]
	})
	if !slices.Equal(names, claims) || !slices.Equal(names, sorted(w.pods)) {
		return false
	}
	for _, name := range names {
		if w.pods[name].Template != w.want.Template || w.claims[name].Bytes < w.want.Bytes || w.cordoned[name] {
			return false
		}
	}
	return true
}
