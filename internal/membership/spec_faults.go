package membership

import (
	"fmt"
	"slices"
	"strings"

	"github.com/quorate/quorate/internal/consensus"
)

// BlockedError refuses a change that would be refused later, or could not succeed.
type BlockedError struct{ Plan Plan }

func (e *BlockedError) Error() string {
	return "the change is blocked: " + strings.Join(e.Plan.Blockers, "; ")
}

// faults are why the Spec can never be fulfilled. A member to be removed that is gone without a tombstone is one only as
// long as nothing has changed: afterwards it may be the job that removed it.
func (g *goal) faults(begins bool) []string {
	var words []string
	for i := range g.arrivals {
		if fault := g.arrivalFault(&g.arrivals[i]); fault != "" {
			words = append(words, fault)
		}
	}
	if fault := g.replacedFault(); fault != "" && begins {
		return append(words, fault)
	}
	for _, id := range slices.Concat(g.spec.Remove, g.spec.Drain) {
		if !g.config.Contains(id) && !g.view.tombstone(id) && begins {
			words = append(words, g.unknown(id))
		}
	}
	for _, id := range slices.Concat(g.spec.Promote, g.spec.Demote, g.spec.Cordon, g.spec.Uncordon) {
		if !g.config.Contains(id) {
			words = append(words, g.unknown(id))
		}
	}
	for i := range g.spec.Update {
		u := &g.spec.Update[i]
		if !g.config.Contains(u.ID) {
			words = append(words, g.unknown(u.ID))
			continue
		}
		for j := range g.config.Members {
			m := &g.config.Members[j]
			if url := sharedURL(m.PeerURLs, u.PeerURLs); url != "" && m.ID != u.ID && !slices.Contains(g.remove, m.ID) {
				words = append(words, g.urlTaken(url, m.ID))
			}
		}
	}
	return words
}

func (g *goal) arrivalFault(a *arrival) string {
	owner, _ := g.config.Member(a.owner)
	switch {
	case !a.present && g.view.tombstone(a.ID):
		return fmt.Sprintf("newcomer %s (%v) was removed by somebody else: ask for the change again", g.names.label(a.ID), a.ID)
	case a.owner != consensus.NoMember:
		return g.urlTaken(sharedURL(a.PeerURLs, owner.PeerURLs), a.owner)
	case !a.present && g.nameFault(a) != "":
		return g.nameFault(a)
	case a.present && a.Learner && g.config.IsVoter(a.ID):
		return fmt.Sprintf("%s was to stay a learner, but somebody made it a voter: demote it, or leave it one",
			g.names.label(a.ID))
	}
	return ""
}

// replacedFault refuses to put a newcomer in the place of a member that is gone: that would be one voter more than before.
func (g *goal) replacedFault() string {
	if g.spec.kind() != KindReplace || len(g.remove) > 0 || g.reached() || g.view.Faults.ReplaceTheGone {
		return ""
	}
	gone := g.spec.Remove[0]
	if !g.view.tombstone(gone) {
		return "" // it is unknown, which is told by another fault
	}
	return fmt.Sprintf("%s (%v) was replaced or removed already; members are %s: to have one more, use `quorate member add`",
		g.names.label(gone), gone, g.names.memberList())
}

// nameFault refuses a second member of a name: people could not tell which one a command means.
func (g *goal) nameFault(a *arrival) string {
	if a.Name == "" || g.view.Faults.AnyName {
		return ""
	}
	for i := range g.config.Members {
		m := &g.config.Members[i]
		if m.ID != a.ID && g.view.publishedName(m) == a.Name && !slices.Contains(g.remove, m.ID) {
			return fmt.Sprintf("the name %s belongs to member %v at %s: choose another, or replace that member", a.Name, m.ID,
				strings.Join(m.PeerURLs, ","))
		}
	}
	return ""
}

func (g *goal) urlTaken(url string, owner consensus.MemberID) string {
	return fmt.Sprintf("URL %s belongs to %s: choose another, or remove %s in the same change",
		url, g.names.label(owner), g.names.label(owner))
}

func (g *goal) unknown(id consensus.MemberID) string {
	if g.view.tombstone(id) {
		return fmt.Sprintf("%s was removed for ever; members are %s", g.names.label(id), g.names.memberList())
	}
	if name := g.names.nameOf(id); name != "" {
		return fmt.Sprintf("member %v (%s) is unknown; members are %s", id, name, g.names.memberList())
	}
	return fmt.Sprintf("member %v is unknown; members are %s", id, g.names.memberList())
}
