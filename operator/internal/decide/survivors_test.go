package decide_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/quorate/quorate/operator/internal/decide"
)

// learns adds m10, a learner that answers with a log of so many entries.
func learns(o *decide.Observed, index int64) {
	o.Answers[0].Members = append(slices.Clone(o.Answers[0].Members), "m10")
	o.Answers = append(o.Answers, decide.Answer{Member: "m10", Index: index, Revision: 70, Voters: o.Answers[0].Voters,
		Members: o.Answers[0].Members})
	o.Claims = append(o.Claims, decide.Claim{Member: "m10", Used: true, Serial: 10})
	o.Pods = append(o.Pods, decide.Pod{Member: "m10", Template: "a", Running: true})
}

// Ensure that the best survivor is the member with the longest log that may be recovered, also a learner; that between equal logs numbers
// count; and that a member which knows that it was removed hides no loss, and is not forgotten.
func TestNext_survivors(t *testing.T) {
	accept := func(o *decide.Observed) { o.Want.Consent, o.Kept.Reported = accepts(o, 70), accepts(o, 70) }
	for _, row := range []struct {
		name string
		set  func(o *decide.Observed)
		kind decide.Kind
		why  string
	}{
		{"a learner has as much", func(o *decide.Observed) {
			learns(o, 90)
			accept(o)
		}, decide.Recover, "The best survivor is m1, at revision 70"},
		{"a learner has more than each voter that is left", func(o *decide.Observed) {
			learns(o, 91)
			accept(o)
		}, decide.Recover, "The best survivor is m10, which does not vote yet and has the most, at revision 70"},
		{"only a learner is left", func(o *decide.Observed) {
			learns(o, 50)
			o.Answers, o.Claims[2].Leaving = o.Answers[1:], true
			o.Pods = slices.DeleteFunc(o.Pods, func(p decide.Pod) bool { return p.Member == "m1" })
			accept(o)
		}, decide.Recover, "3 of 3 voters are lost ([m1 m2 m3]). The best survivor is m10"},
		{"a learner that has no log yet", func(o *decide.Observed) {
			learns(o, 0)
			o.Answers[1].Voters, o.Answers[1].Members = nil, nil
			accept(o)
		}, decide.Recover, "The best survivor is m1, at revision 70"},
		{"of voters with the same log the one with the smallest number", func(o *decide.Observed) {
			names := []string{"m9", "m10", "m2", "m3", "m4"}
			o.Answers, o.Claims, o.Pods = nil, nil, nil
			for _, name := range names[:2] {
				o.Answers = append(o.Answers, decide.Answer{Member: name, Index: 90, Revision: 70, Voters: names, Members: names})
				o.Claims = append(o.Claims, decide.Claim{Member: name, Used: true})
				o.Pods = append(o.Pods, decide.Pod{Member: name, Running: true, Template: "a"})
			}
		}, decide.Wait, "The best survivor is m9, at revision 70"},
		{"one that knows that it was removed has more", func(o *decide.Observed) {
			learns(o, 95)
			o.Answers[1].Members = o.Answers[1].Voters
			accept(o)
		}, decide.Wait, "m10 answers, was removed as far as it knows, and has more than those that may be recovered: keep its claim"},
		{"one that knows that it was removed has no more", func(o *decide.Observed) {
			learns(o, 90)
			o.Answers[1].Members = o.Answers[1].Voters
			accept(o)
		}, decide.Recover, "The best survivor is m1, at revision 70"},
		{"nobody answers but one that knows that it was removed", func(o *decide.Observed) {
			o.Answers[0].Voters, o.Answers[0].Members = []string{"m2", "m3"}, []string{"m2", "m3"}
		}, decide.Wait, "m1 answers, was removed as far as it knows"},
	} {
		t.Run(row.name, func(t *testing.T) {
			o := three()
			leaderless(o)
			row.set(o)
			if a := decide.Next(o); a.Kind != row.kind || !strings.Contains(a.String(), row.why) {
				t.Errorf("got %q (%s), want %s …%s…", a, a.Kind, row.kind, row.why)
			}
		})
	}
}

// Ensure that the recovery of a learner reads the claims of the voters that are left, and leaves them out.
func TestNext_learnerSurvives(t *testing.T) {
	o := three()
	leaderless(o)
	learns(o, 91)
	o.Want.Consent, o.Kept.Reported = accepts(o, 70), accepts(o, 70)
	r := decide.Next(o).Recovery
	if r == nil || r.Survivor != "m10" || !slices.Equal(r.Compare, []string{"m1"}) || !slices.Equal(r.Leaves, []string{"m1", "m2", "m3"}) {
		t.Fatalf("%+v", r)
	}
	o.Kept.Recovery = r
	if a := decide.Next(o); a.Kind != decide.StopMembers {
		t.Errorf("the loss is not seen again: %v", a)
	}
}
