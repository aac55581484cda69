package lab

import (
	"fmt"
	"strings"

	"github.com/quorate/quorate/internal/consensus"
)

// Records of the fast path in a chart: offers, and the verdicts on them.

func numberOf(id consensus.ProposalID) string { return fmt.Sprintf("w%d", id.Sequence) }

// writes names the writes of proposals.
func (n *names) writes(proposals []consensus.Proposal) string {
	words := make([]string, len(proposals))
	for i := range proposals {
		words[i] = numberOf(proposals[i].ID)
	}
	return listed(words)
}

// underOf names the configuration to which a message is bound.
func (j *journal) underOf(m *message) string {
	short, _ := j.w.names.logged(m.Config)
	return short
}

// describeVerdicts describes a member's verdicts on offered proposals.
func (j *journal) describeVerdicts(m *message) string {
	has := "holds"
	if m.Kind == consensus.MsgFast {
		has = "has logged"
	}
	words := make([]string, len(m.Verdicts))
	for i := range m.Verdicts {
		v := &m.Verdicts[i]
		words[i] = fmt.Sprintf("%s %s at revision %d", has, numberOf(v.Proposal), v.Revision)
		if v.Refusal != consensus.RefusedNot {
			words[i] = fmt.Sprintf("refuses %s (%v)", numberOf(v.Proposal), v.Refusal)
		}
	}
	return listed(words) + " under " + j.underOf(m)
}

func (j *journal) describeRefusals(m *message) string {
	words := make([]string, len(m.Refusals))
	for i := range m.Refusals {
		words[i] = numberOf(m.Refusals[i].ID)
	}
	text := strings.Join(words, ", ")
	if len(m.Refusals) > 0 {
		text += fmt.Sprintf(" (%v)", m.Refusals[0].Reason)
	}
	return "refuses " + text + " under " + j.underOf(m)
}
