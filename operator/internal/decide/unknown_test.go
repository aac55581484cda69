package decide_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/quorate/quorate/operator/internal/decide"
)

// Ensure that no loss is reported without members that the best survivor does not know: it may be behind a change of members; and that a
// member that does not vote is the survivor only if it has more than those that do.
func TestNext_unknownMember(t *testing.T) {
	names := []string{"m1", "m2", "m3"}
	other := func(claim decide.Claim, pods ...decide.Pod) func(o *decide.Observed) {
		return func(o *decide.Observed) {
			claim.Member, claim.Serial = "m4", 4
			o.Claims = append(o.Claims, claim)
			for _, p := range pods {
				p.Member, p.Template = "m4", "a"
				o.Pods = append(o.Pods, p)
			}
		}
	}
	learner := func(index int64) func(o *decide.Observed) {
		return func(o *decide.Observed) {
			other(decide.Claim{Used: true}, decide.Pod{Running: true})(o)
			o.Answers = append(o.Answers, decide.Answer{Member: "m4", Index: index, Revision: index - 20, Voters: names,
				Members: append(slices.Clone(names), "m4")})
		}
	}
	const begins = "The best survivor is m1, at revision 70"
	for _, row := range []struct {
		name string
		set  func(o *decide.Observed)
		kind decide.Kind
		why  string
	}{
		{"on a lost node", other(decide.Claim{Used: true}, decide.Pod{NodeLost: true, Stuck: time.Hour}), decide.Wait, "[m4] may have more"},
		{"without a pod", other(decide.Claim{Used: true}, decide.Pod{Homeless: true, Stuck: time.Hour}), decide.Wait, "[m4] may have more"},
		{"removed", other(decide.Claim{Used: true, Removed: true}), decide.Recover, begins},
		{"whose claim goes", other(decide.Claim{Used: true, Leaving: true}, decide.Pod{NodeLost: true, Stuck: time.Hour}), decide.Recover, begins},
		{"which no process had", other(decide.Claim{}), decide.Recover, begins},
		{"without a volume", other(decide.Claim{Used: true, Empty: true}, decide.Pod{}), decide.Recover, begins},
		{"that a recovery left out", func(o *decide.Observed) {
			other(decide.Claim{Used: true}, decide.Pod{NodeLost: true})(o)
			o.Kept.Dropped = []string{"m4"}
		}, decide.Recover, begins},
		{"that answers and knows no more", learner(89), decide.Recover, begins},
		{"that does not vote, and has as much", learner(90), decide.Recover, begins},
		{"that does not vote, and has more", learner(91), decide.Wait, "The best survivor is m4, which does not vote yet and has the most"},
		{"that does not vote, and nobody else answers", func(o *decide.Observed) {
			learner(91)(o)
			o.Answers = o.Answers[1:]
		}, decide.Wait, "[m1] may have more"},
	} {
		t.Run(row.name, func(t *testing.T) {
			o := three()
			leaderless(o)
			row.set(o)
			consent := decide.Consent{Revision: 70}
			if loss := decide.LossOf(o); loss != nil {
				consent.Loss = loss.ID
			}
			o.Want.Consent, o.Kept.Reported = &consent, &consent
			if a := decide.Next(o); a.Kind != row.kind || !strings.Contains(a.Why, row.why) {
				t.Errorf("got %q (%s), want %s …%s…", a, a.Kind, row.kind, row.why)
			}
		})
	}
}

// Ensure that a claim which is used no more holds up no loss once a member that answers has all that the leader had which answered
// without it, that it is asked first otherwise, and that the cost of that is told while others answer.
func TestNext_leftOutTerm(t *testing.T) {
	for term, asks := range map[uint64]bool{0: true, 3: false, 4: false, 5: true} { // of the leader; m1 has an entry of term 4
		o := three()
		leaderless(o)
		o.Claims[0].LeftOut, o.Claims[0].LeftOutTerm, o.Pods, o.Answers[0].Term = true, term, o.Pods[1:], 4
		a := decide.Next(o)
		why := "2 of 3 voters are lost ([m2 m3]). The best survivor is m1"
		if asks {
			why = "[m1] answer, and what they alone have is lost by that"
		}
		if a.Kind != decide.Wait || !strings.Contains(a.Why, why) || strings.Contains(a.Why, "quorate.io/left-out-") != asks {
			t.Errorf("term %d: got %q, want …%s…", term, a, why)
		}
	}
}

// Ensure that a member that a recovery left out, and that leads after another one by hand, is started and stays.
func TestNext_droppedLeads(t *testing.T) {
	o := three()
	o.Kept.Dropped, o.Pods = []string{"m1"}, o.Pods[:2]
	if a := decide.Next(o); a.Kind != decide.CreatePod || a.Member != "m1" {
		t.Errorf("the leader names it: %v", a)
	}
}

// Ensure that claims that stay since members of 1.0 named them last are told, and no others.
func TestObserved_Untold(t *testing.T) {
	o := three()
	for _, c := range []decide.Claim{{Member: "m4", Used: true}, {Member: "m5"}, {Member: "m6", Used: true, LeftOut: true},
		{Member: "m7", Used: true, Leaving: true}, {Member: "m8", Used: true, Epoch: decide.ParseEpoch("0")}} {
		o.Claims = append(o.Claims, c)
	}
	if got := o.Untold(); !slices.Equal(got, []string{"m4"}) {
		t.Errorf("got %v", got)
	}
}

// Ensure that a left-out claim notes a leader's term only if who has an entry of that has all that the claim has.
func TestLeftOutTerm(t *testing.T) {
	r := &decide.Recovery{Survivor: "m1", Term: 7}
	for _, row := range []struct {
		r      *decide.Recovery
		member string
		leads  uint64
		want   uint64
	}{{r, "m1", 8, 8}, {r, "m1", 7, 0}, {r, "m1", 1, 0}, {r, "m2", 8, 0}, {nil, "m1", 8, 0}, {&decide.Recovery{Survivor: "m1"}, "m1", 8, 0}} {
		if got := decide.LeftOutTerm(row.r, row.member, row.leads); got != row.want {
			t.Errorf("%+v: got %d", row, got)
		}
	}
}

// Ensure that no member gets the name of an object that has the cluster's labels and is none of it: it would never be made.
func TestNext_taken(t *testing.T) {
	o := &decide.Observed{Want: decide.Want{Prefix: "kv-x-", Members: 3, ReplaceAfter: 30 * time.Second},
		Taken: []string{"kv-x-2", "kv-x-4", "copy"}}
	a := decide.Next(o)
	if want := []string{"kv-x-5", "kv-x-6", "kv-x-7"}; a.Kind != decide.Found || !slices.Equal(a.Names, want) || a.Serial != 7 {
		t.Errorf("got %v with the names %v", a, a.Names)
	}
}
