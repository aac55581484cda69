package reconfig

import (
	"slices"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/quorum"
)

// Facts are what the leader knows beside the configuration.
type Facts struct {
	Active      []consensus.MemberID // heard lately, the leader included
	CaughtUp    []consensus.MemberID // have nearly all of the leader's log, the leader included
	Tombstones  []consensus.MemberID // removed for ever
	MaxLearners int                  // zero: no limit
	Strict      bool                 // refuse what would leave no reachable majority
	// CountLaggards breaks a rule, as a negative control: a member that was heard counts, whether it has caught up or not.
	// Tests only.
	CountLaggards bool
}

// Next returns the change that does what request asks for, from the configuration current with the given id.
func Next(current *consensus.Config, id consensus.ConfigID, request *consensus.ChangeRequest, facts *Facts) (
	consensus.ConfigChange, consensus.RefusalReason,
) {
	none := consensus.ConfigChange{}
	switch {
	case request.Expected != (consensus.ConfigID{}) && request.Expected != id:
		return none, consensus.ReasonStaleConfig
	case len(request.Steps) == 0 || repeated(request.Steps):
		return none, consensus.ReasonBadRequest
	case current.IsJoint():
		return none, consensus.ReasonChangePending
	}
	target := current.Clone()
	for i := range request.Steps {
		if reason := take(&target, &request.Steps[i], facts); reason != consensus.ReasonNone {
			return none, reason
		}
	}
	if reason := checkUpdates(&target, request.Steps); reason != consensus.ReasonNone {
		return none, reason
	}
	if reason := checkQuorums(current, &target, facts); reason != consensus.ReasonNone {
		return none, reason
	}
	if reason := checkBindings(current, &target); reason != consensus.ReasonNone {
		return none, reason
	}
	if reason := checkCordons(&target, request.Steps); reason != consensus.ReasonNone {
		return none, reason
	}
	protocol, joint, reason := choose(request.Protocol, current, &target)
	if reason != consensus.ReasonNone {
		return none, reason
	}
	change := consensus.ConfigChange{Protocol: protocol, Replaces: id}
	switch {
	case !joint:
		change.Tombs = target.Retiring()
		change.Config = target.Settle()
	default:
		change.Config = join(current, target)
		if protocol == consensus.ProtocolActivate {
			change.Tombs = change.Config.Retiring() // there is no second entry to name them
		}
	}
	return change, consensus.ReasonNone
}

// Leave returns the change that ends the joint configuration with the given id: the incoming voters decide alone.
func Leave(joint *consensus.Config, id consensus.ConfigID, protocol consensus.Protocol) consensus.ConfigChange {
	return consensus.ConfigChange{
		Protocol: protocol, Replaces: id, Config: joint.Settle(), Tombs: joint.Retiring(),
	}
}

// Abort returns the change that goes back from the joint configuration with the given id: the outgoing voters decide
// alone. No member is removed: voters that were to join stay as learners, and keep what they have. Peer URLs that the change
// updated stay updated, and marks of cordon as they are: they say where a member is and which should lead, not which members
// decide.
func Abort(joint *consensus.Config, id consensus.ConfigID, protocol consensus.Protocol) consensus.ConfigChange {
	back := joint.Clone()
	back.Voters, back.Outgoing, back.LearnersNext = back.Outgoing, nil, nil
	for i := range back.Members {
		m := &back.Members[i]
		m.Promote = false // an operator that wants it now asks again
		if !slices.Contains(back.Voters, m.ID) {
			back.Learners = insert(back.Learners, m.ID)
		}
	}
	return consensus.ConfigChange{Protocol: protocol, Abort: true, Replaces: id, Config: back}
}

// VotersChanged counts the voters that are in one of two configurations only.
func VotersChanged(a, b *consensus.Config) int {
	n := 0
	for _, id := range a.Voters {
		if !slices.Contains(b.Voters, id) {
			n++
		}
	}
	for _, id := range b.Voters {
		if !slices.Contains(a.Voters, id) {
			n++
		}
	}
	return n
}

// choose picks a protocol, and reports whether the change goes through a joint configuration.
func choose(asked consensus.Protocol, current, target *consensus.Config) (
	protocol consensus.Protocol, joint bool, reason consensus.RefusalReason,
) {
	differ := VotersChanged(current, target)
	switch asked {
	case consensus.ProtocolAuto:
		if differ <= 1 {
			return consensus.ProtocolSingle, false, consensus.ReasonNone
		}
		return consensus.ProtocolJointEarly, true, consensus.ReasonNone
	case consensus.ProtocolSingle:
		if differ > 1 {
			return 0, false, consensus.ReasonProtocol
		}
		return asked, false, consensus.ReasonNone
	case consensus.ProtocolJoint, consensus.ProtocolJointEarly, consensus.ProtocolActivate:
		return asked, differ > 0, consensus.ReasonNone
	case consensus.ProtocolApply:
		// From two voters to one the survivor may have the entry and never learn that it committed: the only other member
		// that knows is the one that was removed.
		if len(current.Voters) == 2 && len(target.Voters) == 1 {
			return 0, false, consensus.ReasonProtocol
		}
		return asked, differ > 1, consensus.ReasonNone
	}
	return 0, false, consensus.ReasonProtocol
}

// join returns the configuration in which the voters of both decide. Members without a role in target keep their
// attributes, for they must be reached until the joint phase ends.
func join(current *consensus.Config, target consensus.Config) consensus.Config {
	target.Outgoing = slices.Clone(current.Voters)
	for _, id := range target.Learners {
		if slices.Contains(current.Voters, id) {
			target.LearnersNext = insert(target.LearnersNext, id)
		}
	}
	for _, id := range target.LearnersNext {
		target.Learners = without(target.Learners, id)
	}
	return target
}

func repeated(steps []consensus.ChangeStep) bool {
	for i := range steps {
		if steps[i].Member.ID == consensus.NoMember {
			return true
		}
		for j := range i {
			if steps[j].Member.ID == steps[i].Member.ID {
				return true
			}
		}
	}
	return false
}

// checkQuorums refuses a change that leaves no voter to decide, or, if strict, no majority that is heard and has the log. A
// voter that answers and has not caught up cannot commit anything yet, and may never do so: one whose old directory was put
// back stays in that state for ever. A new voter that was no learner has not been heard: the others must be a majority without
// it. Only a lone voter may take that risk, or it could never grow by adding voters.
func checkQuorums(current, target *consensus.Config, facts *Facts) consensus.RefusalReason {
	if len(target.Voters) == 0 {
		return consensus.ReasonLastVoter
	}
	differ := VotersChanged(current, target)
	grows := len(current.Voters) == 1 && len(target.Voters) == 2 && differ == 1
	if !facts.Strict || differ == 0 || (grows && !current.IsLearner(other(target, current.Voters[0]))) {
		return consensus.ReasonNone
	}
	if !reachable(target.Voters, facts) || (differ > 1 && !reachable(current.Voters, facts)) {
		return consensus.ReasonQuorumLost
	}
	return consensus.ReasonNone
}

// checkUpdates refuses peer URLs that another member has after all steps: members that have taken each other's place are
// updated together.
func checkUpdates(target *consensus.Config, steps []consensus.ChangeStep) consensus.RefusalReason {
	for i := range steps {
		m, _ := target.Member(steps[i].Member.ID)
		if steps[i].Kind == consensus.ChangeUpdate && urlTaken(target, &m) {
			return consensus.ReasonPeerURLExists
		}
	}
	return consensus.ReasonNone
}

// checkBindings refuses the first bindings of a cluster if they would leave fewer bound voters than decide: from then on
// the others count nothing.
func checkBindings(current, target *consensus.Config) consensus.RefusalReason {
	if current.Binds() || !target.Binds() {
		return consensus.ReasonNone
	}
	bound := 0
	for _, id := range target.Voters {
		if m, _ := target.Member(id); !m.Storage.IsZero() {
			bound++
		}
	}
	if bound < quorum.Majority(len(target.Voters)) {
		return consensus.ReasonUnbound
	}
	return consensus.ReasonNone
}

// checkCordons refuses to cordon the last voter that is not: the marks of all would mean nothing. Removing or demoting it is
// not refused: a cluster must get rid of a dead voter, and where all are cordoned, all may lead.
func checkCordons(target *consensus.Config, steps []consensus.ChangeStep) consensus.RefusalReason {
	cordons := func(s consensus.ChangeStep) bool { return s.Kind == consensus.ChangeCordon }
	free := func(id consensus.MemberID) bool {
		m, _ := target.Member(id)
		return !m.Cordoned
	}
	if slices.ContainsFunc(steps, cordons) && !slices.ContainsFunc(target.Voters, free) {
		return consensus.ReasonAllCordoned
	}
	return consensus.ReasonNone
}

func other(c *consensus.Config, than consensus.MemberID) consensus.MemberID {
	for _, id := range c.Voters {
		if id != than {
			return id
		}
	}
	return consensus.NoMember
}

// reachable reports whether a majority of voters was heard lately and has caught up.
func reachable(voters []consensus.MemberID, facts *Facts) bool {
	fit := 0
	for _, id := range voters {
		if slices.Contains(facts.Active, id) && (facts.CountLaggards || slices.Contains(facts.CaughtUp, id)) {
			fit++
		}
	}
	return fit >= quorum.Majority(len(voters))
}
