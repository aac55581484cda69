package decide_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/quorate/quorate/operator/internal/decide"
)

// Ensure that whatever is lost, put back or said at the wrong moment, no second cluster is founded, no claim is deleted that may hold the
// only copy of a write, and a consent counts for nothing but the loss that was reported when it was given: majorities are lost and come
// back while the operator is away, statuses are wiped or older ones put back, claims are deleted, survivors are recovered by hand,
// consents come late and are taken out.
func TestNext_randomLoss(t *testing.T) {
	kinds, learners := map[decide.Kind]int{}, 0
	for seed := range *seeds / 2 {
		w := newWorld(uint64(seed)|1<<32, 3+2*(seed%2))
		var log []string
		var old []decide.Kept
		w.slow, w.broken = true, "bad"
		step := func() decide.Action {
			a := decide.Next(w.observe())
			kinds[a.Kind]++
			if a.Kind == decide.RunRecovery && w.learners[a.Member] {
				learners++
			}
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
			old = append(old, w.kept)
		}
		for range 300 {
			if w.rand.IntN(5) == 0 {
				log = append(log, w.harm(old))
			}
			switch { // somebody who answers soon
			case w.rand.IntN(4) > 0:
			case w.kept.VoidConsent != nil:
				w.want.Consent = nil
			case w.want.Consent == nil && w.kept.Reported != nil:
				w.accept()
				log = append(log, "the reported loss is accepted")
			}
			if w.rand.IntN(20) == 0 {
				w.want.Paused = !w.want.Paused
				log = append(log, fmt.Sprintf("paused: %v", w.want.Paused))
			}
			if r := w.kept.Recovery; r != nil && r.Failed == "" && !r.Done && (!r.Stopping || w.rand.IntN(4) == 0) {
				log = append(log, w.harmRecovery(r))
			}
			if w.rand.IntN(6) == 0 {
				for range w.rand.IntN(6) { // the operator is away
					w.advance()
				}
			}
			step()
			if w.rand.IntN(10) == 0 {
				old = append(old, w.kept)
			}
		}
		w.lose([4]bool{})
		w.drain, w.want.Template, w.want.Paused = [4]bool{}, "a", false
		last := decide.Action{}
		for range 600 {
			switch { // somebody who does as the status says
			case w.quorum(), w.kept.VoidConsent != nil, w.kept.Recovery != nil && w.kept.Recovery.Failed != "" && w.rand.IntN(9) == 0:
				w.want.Consent = nil
			case (w.want.Consent == nil || w.kept.Reported != nil) && (w.kept.Recovery == nil || w.kept.Recovery.Done || w.kept.Recovery.Failed != ""):
				w.accept()
			}
			last = step()
			w.want.Uncompared = w.want.Uncompared || strings.Contains(last.Why, "uncomparedLoss")
			if strings.Contains(last.Why, "claim was deleted") || strings.Contains(last.Why, "their data go once") ||
				strings.Contains(last.Why, "delete these pods, too") {
				w.saved()
			}
			if strings.Contains(last.Why, "quorate.io/left-out-") {
				w.asks()
			}
			if _, note, ok := strings.Cut(last.Why, " --overwrite quorate.io/leaves="); ok && strings.Contains(last.Why, "different clusters") {
				note, _, _ = strings.Cut(note, "`")
				w.claims[w.leaderOf(&w.line)].Leaves = strings.Split(note, ",")
			}
			for name, c := range w.claims { // no process had it yet, or none starts with what it has
				if (w.damaged[name] || !w.disk[name]) && (strings.Contains(last.Why, "delete the claims, and then the pods") ||
					strings.Contains(last.Why, "delete its claim, and then its pod") && len(c.Leaves) > 0) {
					w.claims[name].Leaving = true
				}
			}
		}
		copies := 0 // of the state, that members have
		for name := range w.voters {
			if w.disk[name] && !w.damaged[name] && !w.claims[name].Leaving {
				copies++
			}
		}
		if copies > 0 && (!w.quorum() || w.working() != len(w.voters) || last.Kind != decide.Wait || last.Why != "") {
			t.Fatalf("seed %d: after calm: %v; voters %v, of which %d work, claims %v, pods %v, kept %+v\n%q", seed, last, sorted(w.voters),
				w.working(), sorted(w.claims), sorted(w.pods), w.kept, log)
		}
	}
	for _, kind := range []decide.Kind{decide.Recover, decide.StopMembers, decide.RunRecovery, decide.Recovered, decide.RecoverFails,
		decide.EndRecovery, decide.VoidConsent} {
		if kinds[kind] == 0 {
			t.Errorf("no world has seen %s", kind)
		}
	}
	if learners == 0 && *seeds >= 400 {
		t.Error("no world has recovered a learner")
	}
}

// accept is what somebody does who pastes the consent of the status: a word on comparing is for one loss alone.
func (w *world) accept() {
	if w.want.Consent == nil || w.kept.Reported == nil || *w.want.Consent != *w.kept.Reported {
		w.want.Uncompared = false
	}
	w.want.Consent = w.kept.Reported
}

// saved is what somebody does who has copied what is on claims that were deleted: the pods go, and the claims with them.
func (w *world) saved() {
	for name, c := range w.claims {
		for _, pod := range []string{name, name + "-recover"} {
			if p := w.pods[pod]; p != nil && c.Leaving {
				p.Leaving = true
			}
		}
	}
}

// asks is what somebody does with claims that are used no more, once no quorum of the others can come back.
func (w *world) asks() {
	others := 0
	for name := range w.voters {
		if c := w.claims[name]; c != nil && !c.Leaving && !c.LeftOut && w.disk[name] && !w.damaged[name] {
			others++
		}
	}
	for _, name := range sorted(w.claims) {
		if c := w.claims[name]; c.LeftOut && !c.Leaving && len(c.Leaves) == 0 && others < decide.Quorum(len(w.voters)) {
			c.Leaves = slices.DeleteFunc(sorted(w.claims), func(other string) bool { return other == name })
			c.LeftOut, w.asked[name] = false, true
			return
		}
	}
}

// harmRecovery lets something go wrong that ends a recovery, or should.
func (w *world) harmRecovery(r *decide.Recovery) string {
	switch w.rand.IntN(4) {
	case 0: // and the others are lost again, before the operator has looked
		lost := w.lost
		w.lose([4]bool{})
		for range w.rand.IntN(3) {
			w.advance()
		}
		if w.rand.IntN(3) > 0 {
			w.lose(lost)
			return "nodes are well for a moment"
		}
		return "all nodes are well"
	case 1:
		if c := w.claims[r.Survivor]; c != nil {
			c.Leaving = true
		}
		return "the claim of the survivor " + r.Survivor + " is deleted"
	case 2:
		if p := w.pods[r.Survivor]; p != nil {
			p.Leaving = true
		}
		return "the pod of the survivor " + r.Survivor + " is deleted"
	}
	w.want.Template = []string{"a", "bad"}[w.rand.IntN(2)]
	return "the template is " + w.want.Template
}

// harm lets one thing go wrong that may take a majority, and says what.
func (w *world) harm(old []decide.Kept) string {
	names := sorted(w.claims)
	if len(names) == 0 || len(w.ids) == 0 {
		return ""
	}
	n := names[w.rand.IntN(len(names))]
	switch w.rand.IntN(13) {
	case 10:
		w.damaged[n] = w.disk[n] && w.voters[n]
		return "the disk of " + n + " is damaged"
	case 11:
		w.want.Template = []string{"a", "bad"}[w.rand.IntN(2)]
		return "the template is " + w.want.Template
	case 12:
		if w.voters[n] {
			delete(w.claims, n)
			delete(w.pods, n)
			delete(w.disk, n)
			delete(w.log, n)
			delete(w.damaged, n)
		}
		return n + " is gone with its node and its disk"
	case 0, 1:
		lost := [4]bool{}
		for i := range lost {
			lost[i] = w.rand.IntN(2) == 0
		}
		w.lose(lost)
		return "nodes are lost"
	case 2:
		w.lose([4]bool{})
		return "all nodes are well"
	case 3:
		w.claims[n].Leaving = true
		return "the claim of " + n + " is deleted"
	case 4:
		if p := w.pods[n]; p != nil {
			p.Leaving = true
		}
		return "the pod of " + n + " is deleted"
	case 5:
		w.kept, w.meddled = decide.Kept{}, true
		return "the status is wiped"
	case 6:
		w.kept, w.meddled = old[w.rand.IntN(len(old))], true
		return "an old status is put back"
	case 7:
		w.want.Consent, w.want.Uncompared = w.kept.Reported, w.rand.IntN(4) == 0
		return fmt.Sprintf("the reported loss is accepted, uncompared: %v", w.want.Uncompared)
	case 8:
		w.want.Consent = nil
		return "the consent is taken out"
	}
	if w.quorum() || w.kept.Recovery != nil && !w.kept.Recovery.Done {
		return ""
	}
	for _, name := range sorted(w.voters) {
		if w.disk[name] && !w.damaged[name] && w.claims[name] != nil && !w.claims[name].Leaving && !w.lost[w.node[name]] {
			if w.claims[name].Leaves == nil && w.rand.IntN(2) == 0 { // as the page says
				w.claims[name].Leaves = slices.DeleteFunc(sorted(w.voters), func(voter string) bool { return voter == name })
				w.claims[name].LeftOut = false
			}
			w.recovered(name)
			return name + " is recovered by hand"
		}
	}
	return ""
}
