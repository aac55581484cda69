package membership

import (
	"fmt"
	"slices"
	"strings"

	"github.com/quorate/quorate/internal/base/plural"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/quorum"
	"github.com/quorate/quorate/internal/consensus/reconfig"
)

// refusal is a change that the leader refuses.
type refusal struct {
	view   *View
	config *consensus.Config // what the one in force becomes if nothing else happens
	roles  *roles            // that are to change
	names  *memberNames
	asked  *consensus.ChangeRequest
	waits  string // what each learner that is waited for is at
}

// words say why the leader refuses, and what to do.
func (r *refusal) words(reason consensus.RefusalReason) string {
	switch reason {
	case consensus.ReasonQuorumLost:
		return r.quorumWords()
	case consensus.ReasonLastVoter:
		return fmt.Sprintf("this would leave no voter at all: %s %s the last; add or promote another in the same change",
			r.names.list(r.config.Voters), plural.Word(len(r.config.Voters), "is", "are"))
	case consensus.ReasonProtocol:
		return r.protocolWords()
	case consensus.ReasonTooManyLearners:
		return fmt.Sprintf("the cluster may have %s (--max-learners), and this needs %d: raise the limit, add fewer "+
			"members at a time, or remove a learner first", plural.Of(r.view.MaxLearners, "learner"),
			len(r.config.Learners)+len(r.asked.Steps))
	case consensus.ReasonUnbound:
		return "the learners to be bound to their data directories: " + r.waits
	case consensus.ReasonLearnerLags:
		return "the learners to catch up: " + r.waits
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
func (r *refusal) protocolWords() string {
	target, _ := r.foresee()
	n := reconfig.VotersChanged(r.config, &target)
	if r.asked.Protocol == consensus.ProtocolApply {
		return "apply cannot go from two voters to one: use single, or auto"
	}
	return fmt.Sprintf("%v changes one voter, this changes %d: use %v, or auto", r.asked.Protocol, n,
		consensus.ProtocolJointEarly)
}

// foresee returns the configuration that request leads to if neither silent members nor the protocol forbid it.
func (r *refusal) foresee() (consensus.Config, bool) {
	facts := r.view.facts()
	facts.Strict = false
	free := *r.asked
	free.Protocol, free.Expected = consensus.ProtocolAuto, consensus.ConfigID{}
	change, reason := reconfig.Next(r.config, r.view.ID, &free, &facts)
	return change.Config.Settle(), reason == consensus.ReasonNone
}

// quorumWords tell whose silence forbids the change, and what would be possible instead.
func (r *refusal) quorumWords() string {
	target, _ := r.foresee()
	fit := r.view.Fit()
	words := r.deed() + " would leave "
	voters := target.Voters
	if among(voters, fit) >= quorum.Majority(len(voters)) {
		voters = r.config.Voters // it is the set before that cannot decide
		words = r.deed() + " needs "
	}
	ready := among(voters, fit)
	only := "only " + fmt.Sprint(ready)
	if ready == 0 {
		only = "none"
	}
	silent, late := r.unfit(voters)
	verb := plural.Word(max(ready, 1), "answers", "answer")
	if len(late) > 0 {
		verb += plural.Word(max(ready, 1), " and has", " and have") + " caught up"
	}
	words += fmt.Sprintf("%s of which %s %s: ", plural.Of(len(voters), "voter"), only, verb)
	words += r.readyWords(silent, late)
	if dead := slices.Concat(silent, late); r.mayGoInstead(dead) {
		words += ", or remove " + r.names.label(dead[0]) + " instead"
	}
	return words
}

// unfit lists the voters that take part in no commit now: those that do not answer, and those that do and lag behind.
func (r *refusal) unfit(voters []consensus.MemberID) (silent, late []consensus.MemberID) {
	active, fit := r.view.active(), r.view.Fit()
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
func (r *refusal) readyWords(silent, late []consensus.MemberID) string {
	var words []string
	var startable []consensus.MemberID
	for _, id := range silent {
		if m, _ := r.view.Member(id); m.refused() {
			words = append(words, r.names.resetWords(&m))
		} else {
			startable = append(startable, id)
		}
	}
	if len(startable) > 0 {
		words = append(words, "start "+r.names.either(startable)+" first")
	}
	for _, id := range late {
		m, _ := r.view.Member(id)
		words = append(words, r.names.progress(&m)+", wait until it has caught up; if it stays so, see its log")
	}
	return strings.Join(words, "; ")
}

// mayGoInstead reports whether the silent member could be removed in place of the one that answers.
func (r *refusal) mayGoInstead(dead []consensus.MemberID) bool {
	if len(dead) != 1 || len(r.roles.remove) != 1 || r.roles.leaving(dead[0]) || len(r.roles.demote) > 0 {
		return false
	}
	instead := *r.asked
	instead.Steps = slices.Clone(r.asked.Steps)
	for i := range instead.Steps {
		if instead.Steps[i].Kind == consensus.ChangeRemove {
			instead.Steps[i].Member.ID = dead[0]
		}
	}
	facts := r.view.facts()
	_, reason := reconfig.Next(r.config, r.view.ID, &instead, &facts)
	return reason == consensus.ReasonNone
}

// deed names what request does to the voters.
func (r *refusal) deed() string {
	var words []string
	for _, kind := range []struct {
		kind consensus.ChangeKind
		verb string
	}{{consensus.ChangeRemove, "removing"}, {consensus.ChangePromote, "promoting"}, {consensus.ChangeDemote, "demoting"}} {
		var ids []consensus.MemberID
		for i := range r.asked.Steps {
			if r.asked.Steps[i].Kind == kind.kind {
				ids = append(ids, r.asked.Steps[i].Member.ID)
			}
		}
		if len(ids) > 0 {
			words = append(words, kind.verb+" "+r.names.list(ids))
		}
	}
	return join(words)
}
