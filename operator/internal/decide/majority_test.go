package decide_test

import (
	"fmt"
	"testing"

	"github.com/quorate/quorate/operator/internal/decide"
)

// Ensure that a consent never loses what was acknowledged after it was asked for: a majority that was given up comes back while the
// command of the recovery waits, runs or has run, leads for a while, and is lost again, with no operator that looks.
func TestNext_randomMajority(t *testing.T) {
	kinds, served := map[decide.Kind]int{}, 0
	for seed := range *seeds / 4 {
		w := newWorld(uint64(seed)|1<<33, 3+2*(seed%2))
		w.slow = seed%3 == 0
		var log []string
		step := func() decide.Action {
			a := decide.Next(w.observe())
			kinds[a.Kind]++
			if a.Kind != decide.Wait {
				log = append(log, a.String())
			}
			if w.rand.IntN(8) > 0 {
				w.act(a)
			}
			w.advance()
			if w.fault != "" {
				t.Fatalf("seed %d: %s\n%q", seed, w.fault, log)
			}
			return a
		}
		for range 60 {
			step()
		}
		for range 3 {
			for range 50 { // until a majority is lost
				lost := [4]bool{}
				for i := range lost {
					lost[i] = w.rand.IntN(2) == 0
				}
				if w.lose(lost); !w.quorum() && w.working() > 0 {
					break
				}
			}
			for range 60 {
				if w.kept.VoidConsent != nil {
					w.want.Consent = nil
				} else if w.want.Consent == nil {
					w.want.Consent = w.kept.Reported
				}
				p := w.pods[w.survivor()+"-recover"]
				if r := w.kept.Recovery; r != nil && !r.Done && (p != nil || w.ran) && w.rand.IntN(4) == 0 { // no operator looks
					before, lost := w.revision, w.lost
					for range w.rand.IntN(3) {
						w.advance()
					}
					w.lose([4]bool{})
					for range w.rand.IntN(3) {
						w.advance()
					}
					log = append(log, fmt.Sprintf("nodes are well; acknowledged: %d", w.revision-before))
					if w.rand.IntN(4) > 0 {
						w.lose(lost)
						for range w.rand.IntN(3) {
							w.advance()
						}
						log = append(log, "nodes are lost again")
					}
					if w.revision > before {
						served++
					}
				}
				step()
			}
			w.lose([4]bool{})
			w.want.Consent = nil
			last := decide.Action{}
			for range 300 {
				if last = step(); last.Kind == decide.Wait && last.Why == "" {
					break
				}
			}
			if !w.quorum() || w.working() != len(w.voters) {
				t.Fatalf("seed %d: after calm: %v; voters %v, of which %d work, claims %v\n%q", seed, last, sorted(w.voters), w.working(),
					sorted(w.claims), log)
			}
		}
	}
	for _, kind := range []decide.Kind{decide.RunRecovery, decide.Recovered, decide.LeaveOut} {
		if kinds[kind] == 0 {
			t.Errorf("no world has seen %s", kind)
		}
	}
	if served == 0 {
		t.Error("in no world a majority came back, and led")
	}
}

// begun is a world with a cluster of three.
func begun(t *testing.T) *world {
	w := newWorld(1, 3)
	for range 40 {
		w.act(decide.Next(w.observe()))
		w.advance()
	}
	if !w.asWanted() {
		t.Fatalf("the cluster does not begin: %v", decide.Next(w.observe()))
	}
	return w
}

// loseTwo loses the node of two of three members.
func (w *world) loseTwo() (lost []string, survivor string) {
	names := sorted(w.voters)
	for _, name := range names[:2] {
		w.node[name] = 0
	}
	w.node[names[2]] = 1
	w.lose([4]bool{true})
	return names[:2], names[2]
}
