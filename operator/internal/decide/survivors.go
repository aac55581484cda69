package decide

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// survivors returns what those members tell that may be recovered: the voters and the learners of the configuration that they
// know, as `quorate recover` takes either. Others, which know that they were removed, nobody recovers.
func (o *Observed) survivors() (able, others []Answer) {
	newest := Newest(o.Claims).Number
	for i := range o.Answers {
		a := &o.Answers[i]
		c := o.claim(a.Member)
		switch {
		case a.Epoch < newest || c != nil && c.Removed:
		case len(a.Voters) > 0 && (a.votes() || slices.Contains(a.Members, a.Member)):
			able = append(able, *a)
		default:
			others = append(others, *a)
		}
	}
	return able, others
}

// removedMore says of members that answer, know that they were removed and have more than all that may be recovered, what to do
// about them.
func (o *Observed) removedMore(names []string) string {
	var said []string
	for _, name := range names {
		said = append(said, fmt.Sprintf("%s answers, was removed as far as it knows, and has more than those that may be "+
			"recovered: keep its claim. Bring other members back, or see by hand what it has more "+
			"(docs/kubernetes-operator.md, Recover by hand). If that may be lost: %s, and the loss is judged "+
			"without it", name, o.kubectl("annotate pvc %s %s=true", name, noteRemoved)))
	}
	return strings.Join(said, ". ")
}

// noteRemoved is the annotation of a claim that Claim.Removed is read from.
const noteRemoved = "quorate.io/removed"

// votes tells whether the member is a voter of the configuration that it knows.
func (a *Answer) votes() bool { return slices.Contains(a.Voters, a.Member) }

// role is what people must know of the member as a survivor; empty: it is a voter.
func (a *Answer) role() string {
	if a.votes() {
		return ""
	}
	return ", which does not vote yet and has the most"
}

// compare orders answers by what their logs hold, as an election does. The log of a learner counts as that of a voter: it has
// all that was committed before the term of its last entry.
func (a *Answer) compare(b *Answer) int {
	return cmp.Or(cmp.Compare(a.Epoch, b.Epoch), cmp.Compare(a.Term, b.Term), cmp.Compare(a.Index, b.Index))
}

func toInt(is bool) int {
	if is {
		return 1
	}
	return 0
}

// ByNumber orders names of members of one cluster by their numbers: kv-x-9 is before kv-x-10.
func ByNumber(a, b string) int { return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b)) }
