package membership

import (
	"fmt"
	"slices"
	"strings"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/quorum"
	"github.com/quorate/quorate/internal/consensus/reconfig"
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
		if !g.config.Contains(id) && !g.tombstone(id) && begins {
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
	case !a.present && g.tombstone(a.ID):
		return fmt.Sprintf("newcomer %s (%v) was removed by somebody else: ask for the change again", g.label(a.ID), a.ID)
	case a.owner != consensus.NoMember:
		return g.urlTaken(sharedURL(a.PeerURLs, owner.PeerURLs), a.owner)
	case !a.present && g.nameFault(a) != "":
		return g.nameFault(a)
	case a.present && a.Learner && g.config.IsVoter(a.ID):
		return fmt.Sprintf("%s was to stay a learner, but somebody made it a voter: demote it, or leave it one", g.label(a.ID))
	}
	return ""
}

// replacedFault refuses to put somebody in the place of a member that is gone: that would be one voter more than before.
func (g *goal) replacedFault() string {
	if g.spec.kind() != KindReplace || len(g.remove) > 0 || g.reached() || g.view.Faults.ReplaceTheGone {
		return ""
	}
	gone := g.spec.Remove[0]
	if !g.tombstone(gone) {
		return "" // it is unknown, which is told by another fault
	}
	return fmt.Sprintf("%s (%v) was replaced or removed already; members are %s: to have one more, use `quorate member add`",
		g.label(gone), gone, g.memberList())
}

// nameFault refuses a second member of a name: people could not tell which one a command means.
func (g *goal) nameFault(a *arrival) string {
	if a.Name == "" || g.view.Faults.AnyName {
		return ""
	}
	for i := range g.config.Members {
		m := &g.config.Members[i]
		if m.ID != a.ID && g.publishedName(m) == a.Name && !slices.Contains(g.remove, m.ID) {
			return fmt.Sprintf("the name %s belongs to member %v at %s: choose another, or replace that member", a.Name, m.ID,
				strings.Join(m.PeerURLs, ","))
		}
	}
	return ""
}

func (g *goal) urlTaken(url string, owner consensus.MemberID) string {
	return fmt.Sprintf("URL %s belongs to %s: choose another, or remove %s in the same change",
		url, g.label(owner), g.label(owner))
}

func (g *goal) unknown(id consensus.MemberID) string {
	if g.tombstone(id) {
		return fmt.Sprintf("%s was removed for ever; members are %s", g.label(id), g.memberList())
	}
	if name := g.nameOf(id); name != "" {
		return fmt.Sprintf("member %v (%s) is unknown; members are %s", id, name, g.memberList())
	}
	return fmt.Sprintf("member %v is unknown; members are %s", id, g.memberList())
}

// refusal says in words why the leader would refuse, and what to do.
func (g *goal) refusal(reason consensus.RefusalReason, request *consensus.ChangeRequest) string {
	switch reason {
	case consensus.ReasonQuorumLost:
		return g.quorumWords(request)
	case consensus.ReasonLastVoter:
		return fmt.Sprintf("this would leave no voter at all: %s %s the last; add or promote another in the same change",
			g.list(g.config.Voters), plural(len(g.config.Voters), "is", "are"))
	case consensus.ReasonProtocol:
		return g.protocolWords(request)
	case consensus.ReasonTooManyLearners:
		return fmt.Sprintf("the cluster may have %s (--max-learners), and this needs %d: raise the limit, add fewer "+
			"members at a time, or remove a learner first", count(g.view.MaxLearners, "learner"),
			len(g.config.Learners)+len(request.Steps))
	case consensus.ReasonUnbound:
		return "the learners to be bound to their data directories: " + g.awaiting()
	case consensus.ReasonLearnerLags:
		return "the learners to catch up: " + g.awaiting()
	case consensus.ReasonPeerURLExists:
		return "a peer URL belongs to another member: choose another"
	case consensus.ReasonAllCordoned:
		return "every voter would be cordoned, and somebody must lead: leave one out, or uncordon another first"
	case consensus.ReasonChangePending:
		return "another change is under way: wait until it is final"
	}
	return fmt.Sprintf("the leader refuses this change (reason %d)", reason)
}

// protocolWords tell why the protocol that was asked for cannot do it.
func (g *goal) protocolWords(request *consensus.ChangeRequest) string {
	target, _ := g.foresee(request)
	n := reconfig.VotersChanged(&g.config, &target)
	if request.Protocol == consensus.ProtocolApply {
		return "apply cannot go from two voters to one: use single, or auto"
	}
	return fmt.Sprintf("%v changes one voter, this changes %d: use %v, or auto", request.Protocol, n,
		consensus.ProtocolJointEarly)
}

// foresee returns the configuration that request leads to if neither silent members nor the protocol forbid it.
func (g *goal) foresee(request *consensus.ChangeRequest) (consensus.Config, bool) {
	facts := g.facts()
	facts.Strict = false
	free := *request
	free.Protocol, free.Expected = consensus.ProtocolAuto, consensus.ConfigID{}
	change, reason := reconfig.Next(&g.config, g.view.ID, &free, &facts)
	return change.Config.Settle(), reason == consensus.ReasonNone
}

// quorumWords tell whose silence forbids the change, and what would be possible instead.
func (g *goal) quorumWords(request *consensus.ChangeRequest) string {
	target, _ := g.foresee(request)
	fit := g.view.Fit()
	words := g.deed(request) + " would leave "
	voters := target.Voters
	if among(voters, fit) >= quorum.Majority(len(voters)) {
		voters = g.config.Voters // it is the set before that cannot decide
		words = g.deed(request) + " needs "
	}
	ready := among(voters, fit)
	only := "only " + fmt.Sprint(ready)
	if ready == 0 {
		only = "none"
	}
	silent, late := g.unfit(voters)
	verb := plural(max(ready, 1), "answers", "answer")
	if len(late) > 0 {
		verb += plural(max(ready, 1), " and has", " and have") + " caught up"
	}
	words += fmt.Sprintf("%s of which %s %s: ", count(len(voters), "voter"), only, verb)
	words += g.readyWords(silent, late)
	if dead := slices.Concat(silent, late); g.mayGoInstead(request, dead) {
		words += ", or remove " + g.label(dead[0]) + " instead"
	}
	return words
}

// unfit lists the voters that take part in no commit now: those that do not answer, and those that do and lag behind.
func (g *goal) unfit(voters []consensus.MemberID) (silent, late []consensus.MemberID) {
	active, fit := g.view.active(), g.view.Fit()
	for _, id := range voters {
		switch {
		case slices.Contains(fit, id):
		case slices.Contains(active, id):
			late = append(late, id)
		default:
			silent = append(silent, id)
		}
	}
	return silent, late
}

// readyWords say what to do before these voters count.
func (g *goal) readyWords(silent, late []consensus.MemberID) string {
	var words []string
	var startable []consensus.MemberID
	for _, id := range silent {
		if m, _ := g.view.Member(id); m.refused() {
			words = append(words, g.resetWords(&m))
		} else {
			startable = append(startable, id)
		}
	}
	if len(startable) > 0 {
		words = append(words, "start "+either(g, startable)+" first")
	}
	for _, id := range late {
		m, _ := g.view.Member(id)
		words = append(words, g.progress(&m)+", wait until it has caught up; if it stays so, see its log")
	}
	return strings.Join(words, "; ")
}

func either(g *goal, ids []consensus.MemberID) string {
	words := make([]string, len(ids))
	for i, id := range ids {
		words[i] = g.label(id)
	}
	return strings.Join(words, " or ")
}

// mayGoInstead reports whether the silent member could be removed in place of the one that answers.
func (g *goal) mayGoInstead(request *consensus.ChangeRequest, dead []consensus.MemberID) bool {
	if len(dead) != 1 || len(g.remove) != 1 || g.leaving(dead[0]) || len(g.demote) > 0 {
		return false
	}
	instead := *request
	instead.Steps = slices.Clone(request.Steps)
	for i := range instead.Steps {
		if instead.Steps[i].Kind == consensus.ChangeRemove {
			instead.Steps[i].Member.ID = dead[0]
		}
	}
	facts := g.facts()
	_, reason := reconfig.Next(&g.config, g.view.ID, &instead, &facts)
	return reason == consensus.ReasonNone
}

// deed names what request does to the voters.
func (g *goal) deed(request *consensus.ChangeRequest) string {
	var words []string
	for _, kind := range []struct {
		kind consensus.ChangeKind
		verb string
	}{{consensus.ChangeRemove, "removing"}, {consensus.ChangePromote, "promoting"}, {consensus.ChangeDemote, "demoting"}} {
		var ids []consensus.MemberID
		for i := range request.Steps {
			if request.Steps[i].Kind == kind.kind {
				ids = append(ids, request.Steps[i].Member.ID)
			}
		}
		if len(ids) > 0 {
			words = append(words, kind.verb+" "+g.list(ids))
		}
	}
	return join(words)
}
