package membership

import (
	"fmt"
	"slices"
	"strings"

	"github.com/quorate/quorate/internal/base/plural"
	"github.com/quorate/quorate/internal/consensus"
)

// awaiting says what each learner that is waited for is at.
func (g *goal) awaiting() string {
	var words []string
	for _, m := range g.awaited() {
		words = append(words, g.names.progress(&m))
	}
	return strings.Join(words, "; ")
}

func (g *goal) handOverWords(to consensus.MemberID) string {
	return fmt.Sprintf("hands leadership from %s to %s", g.names.label(g.view.Leader), g.names.label(to))
}

// heirs names who may lead next. Which of several has most of the log is decided by the write before the hand-over.
func (g *goal) heirs() string {
	var ids []consensus.MemberID
	for _, m := range g.successors() {
		ids = append(ids, m.ID)
	}
	if len(ids) < 2 {
		return g.names.list(ids)
	}
	last := len(ids) - 1
	return strings.ReplaceAll(g.names.list(ids[:last]), " and ", ", ") + " or " + g.names.label(ids[last]) +
		", whichever has most of the log"
}

func (g *goal) noSuccessorWords() string {
	var others []consensus.MemberID
	for _, id := range g.config.Voters {
		if !slices.Contains(g.spec.Drain, id) && !g.config.Cordoned(id) {
			others = append(others, id)
		}
	}
	held := pick(g.config.Voters, func(id consensus.MemberID) bool {
		return g.config.Cordoned(id) && !slices.Contains(g.spec.Drain, id)
	})
	if len(others) == 0 && len(held) > 0 {
		return fmt.Sprintf("%s cannot hand leadership over: of the others %s %s cordoned; uncordon one first",
			g.names.label(g.view.Leader), g.names.list(held), plural.Word(len(held), "is", "are"))
	}
	if len(others) == 0 {
		return fmt.Sprintf("%s cannot hand leadership over: every voter is to be drained; leave one out",
			g.names.label(g.view.Leader))
	}
	return fmt.Sprintf("%s cannot hand leadership over: %s %s not answer or %s behind; start %s, or wait",
		g.names.label(g.view.Leader), g.names.list(others), plural.Word(len(others), "does", "do"), plural.Word(len(others),
			"is", "are"),
		plural.Word(len(others), "it", "one of them"))
}

func (g *goal) yieldWords() string {
	return fmt.Sprintf("waits until %s, which is cordoned, has handed leadership to %s",
		g.names.label(g.view.Leader), g.heirs())
}

func expectedWords(now, want consensus.ConfigID) string {
	return fmt.Sprintf("the configuration is %v, the plan expects %v: plan again", now, want)
}

// swapWords say what is being changed, in the third person.
func (g *goal) swapWords(due *roles) string {
	return due.words(&g.names, "swaps", "makes", "removes", "changes")
}

// swapTitle says the same as an order.
func (g *goal) swapTitle() string {
	due := g.due()
	return due.words(&g.names, "swap", "make", "remove", "change")
}

func (g *goal) settling(phase Phase) string {
	words := fmt.Sprintf("waits until configuration %v is final", g.view.ID)
	if phase == PhaseDecided {
		words = "the change is decided, nobody can undo it; " + words
	}
	if going := g.removedWords(" may not be switched off before"); going != "" {
		words += ": " + going
	}
	return words
}

func (g *goal) removedWords(then string) string {
	if len(g.spec.Remove) == 0 {
		return ""
	}
	return g.names.list(g.spec.Remove) + then
}

// inItsOwnPlace reports whether a member was replaced by one of its own name: no process is to be switched off.
func (g *goal) inItsOwnPlace() bool {
	for i := range g.spec.Add {
		for _, id := range g.spec.Remove {
			if name := g.names.nameOf(id); name != "" && name == g.spec.Add[i].Name {
				return true
			}
		}
	}
	return false
}

// resets reports whether a change gives the place of a member to a new one of the same name and URLs, and does nothing else.
func (g *goal) resets() bool {
	if len(g.spec.Add) != 1 || len(g.spec.Remove) != 1 || !g.inItsOwnPlace() {
		return false
	}
	former, ok := g.config.Member(g.spec.Remove[0])
	return ok && SameURLs(former.PeerURLs, g.spec.Add[0].PeerURLs)
}

// doneWords tell how the cluster is now, and who may be switched off.
func (g *goal) doneWords() string {
	words := fmt.Sprintf("%s %s", g.names.list(g.config.Voters), plural.Word(len(g.config.Voters), "votes", "vote"))
	if n := len(g.config.Learners); n > 0 {
		words += fmt.Sprintf(", %s %s", g.names.list(g.config.Learners), plural.Word(n, "learns", "learn"))
	}
	if n := len(g.spec.Cordon); n > 0 {
		words += fmt.Sprintf("; %s %s cordoned", g.names.list(g.spec.Cordon), plural.Word(n, "is", "are"))
	}
	if slices.Contains(g.spec.Cordon, g.view.Leader) {
		words += fmt.Sprintf(": %s leads on until another voter can", g.names.label(g.view.Leader))
	}
	if len(g.spec.Uncordon) > 0 {
		words += fmt.Sprintf("; %s may lead", g.names.list(g.spec.Uncordon))
	}
	switch gone := g.removedWords(" may be switched off"); {
	case gone != "" && g.inItsOwnPlace():
		words += "; the former data directory of " + g.names.nameOf(g.spec.Remove[0]) + " may be deleted"
	case gone != "":
		unit, it, brings := "its unit", "it", "brings it back"
		if len(g.spec.Remove) > 1 {
			unit, it, brings = "their units", "they", "brings them back"
		}
		words += "; " + gone + "; take --initial-cluster out of " + unit + ": with that flag and an empty directory " + it +
			" would found another, empty cluster with the same id; only --join " + brings
	}
	return words
}

// refusal says in words why the leader would refuse a request, and what to do.
func (g *goal) refusal(reason consensus.RefusalReason, request *consensus.ChangeRequest) string {
	r := refusal{view: g.view, config: &g.config, roles: &g.roles, names: &g.names, asked: request, waits: g.awaiting()}
	return r.words(reason)
}
