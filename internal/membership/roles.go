package membership

import (
	"fmt"
	"slices"
	"strings"

	"github.com/quorate/quorate/internal/base/plural"
	"github.com/quorate/quorate/internal/consensus"
)

// roles are the changes of roles and URLs that are still to be made.
type roles struct {
	remove  []consensus.MemberID
	promote []consensus.MemberID
	demote  []consensus.MemberID
	update  []consensus.Member
}

// leaving reports whether a member loses its vote or its place.
func (r *roles) leaving(id consensus.MemberID) bool {
	return slices.Contains(r.remove, id) || slices.Contains(r.demote, id)
}

// any reports whether a change of roles or URLs is still to be made.
func (r *roles) any() bool { return len(r.remove)+len(r.promote)+len(r.demote)+len(r.update) > 0 }

// words say what is changed, with these verbs.
func (r *roles) words(n *memberNames, swap, make, remove, change string) string {
	var words []string
	replaces := len(r.promote) > 0 && len(r.remove) > 0 && len(r.demote) == 0 &&
		!slices.ContainsFunc(r.remove, n.config.IsLearner)
	switch {
	case replaces:
		words = append(words, fmt.Sprintf("%s %s for %s", swap, n.list(r.remove), n.list(r.promote)))
	default:
		if count := len(r.promote); count > 0 {
			words = append(words, fmt.Sprintf("%s %s %s", make, n.list(r.promote), plural.Word(count, "a voter", "voters")))
		}
		if len(r.remove) > 0 {
			words = append(words, remove+" "+n.list(r.remove))
		}
		if count := len(r.demote); count > 0 {
			words = append(words, fmt.Sprintf("%s %s %s", make, n.list(r.demote), plural.Word(count, "a learner", "learners")))
		}
	}
	for i := range r.update {
		u := &r.update[i]
		urls := strings.Join(u.PeerURLs, ",")
		words = append(words, fmt.Sprintf("%s the peer URLs of %s to %s", change, n.label(u.ID), urls))
	}
	return join(words)
}

// cordonMarks are the marks of cordon that are still to be set or taken away.
type cordonMarks struct {
	cordon   []consensus.MemberID
	uncordon []consensus.MemberID
}

// any reports whether marks of cordon are still to be set or taken away.
func (c *cordonMarks) any() bool { return len(c.cordon)+len(c.uncordon) > 0 }

// words say which marks change, in the third person if s is "s".
func (c *cordonMarks) words(n *memberNames, s string) string {
	var words []string
	if len(c.cordon) > 0 {
		words = append(words, "cordon"+s+" "+n.list(c.cordon))
	}
	if len(c.uncordon) > 0 {
		words = append(words, "uncordon"+s+" "+n.list(c.uncordon))
	}
	return join(words)
}
