package membership

import (
	"fmt"
	"slices"

	"github.com/quorate/quorate/internal/base/plural"
	"github.com/quorate/quorate/internal/base/typed"
	"github.com/quorate/quorate/internal/consensus"
)

// undo goes back as far as one can: out of a joint configuration that is not decided, and then without the learners that
// the job added. A member that a change has removed, promoted or demoted for good stays so, but for newcomers that a job by
// protocol single has made voters, as long as no member has lost its vote for them.
func (g *goal) undo() Action {
	v := g.view
	switch {
	case !v.settled() && g.abortable():
		if !v.TermStarted {
			return Action{Phase: PhaseUndo, Message: g.notYet(), Wait: true}
		}
		return Action{
			Phase: PhaseUndo, Message: "goes back to the voters before: " + g.names.list(v.Config.Outgoing),
			Change: &consensus.ChangeRequest{Abort: true, Expected: v.ID},
		}
	case !v.settled():
		return Action{Phase: PhaseUndo, Message: "to cancel, " + g.notYet(), Wait: true}
	}
	own := g.own()
	if len(own) == 0 {
		own = g.early()
	}
	if len(own) == 0 {
		return Action{Phase: PhaseUndo, Message: g.cancelledWords(), End: StateCancelled}
	}
	request := g.request(steps(consensus.ChangeRemove, own))
	request.Protocol = consensus.ProtocolAuto
	return g.propose(PhaseUndo, request, "removes "+g.names.list(own)+" again")
}

// own returns the learners that this job added. An adopted one belongs to the job or the client that added it.
func (g *goal) own() []consensus.MemberID {
	var ids []consensus.MemberID
	for i := range g.spec.Add {
		if id := g.spec.Add[i].ID; g.config.IsLearner(id) {
			ids = append(ids, id)
		}
	}
	return ids
}

// early returns a newcomer of a job by single that votes already, while all voters that are to go for it vote still; nil if
// there is none. One goes at a time.
func (g *goal) early() []consensus.MemberID {
	if g.spec.Protocol != consensus.ProtocolSingle || slices.ContainsFunc(g.spec.Remove, g.view.tombstone) ||
		slices.ContainsFunc(g.spec.Demote, g.config.IsLearner) {
		return nil
	}
	var votes []consensus.MemberID
	for i := range g.spec.Add {
		if id := g.spec.Add[i].ID; g.config.IsVoter(id) {
			votes = append(votes, id)
		}
	}
	if best := g.safest(steps(consensus.ChangeRemove, votes)); best != nil {
		return []consensus.MemberID{best.Member.ID}
	}
	return nil
}

// abortable reports whether the joint configuration in force is this job's, and not decided.
func (g *goal) abortable() bool {
	v := g.view
	c := &v.Config
	undecided := v.Protocol == consensus.ProtocolJoint || (v.Protocol == consensus.ProtocolJointEarly && v.Undecided)
	if !c.IsJoint() || !undecided {
		return false
	}
	mine := func(ids, allowed []consensus.MemberID) bool {
		return !slices.ContainsFunc(ids, func(id consensus.MemberID) bool { return !slices.Contains(allowed, id) })
	}
	in := pick(c.Voters, func(id consensus.MemberID) bool { return !slices.Contains(c.Outgoing, id) })
	may := slices.Clone(g.spec.Promote)
	for i := range g.arrivals {
		may = append(may, g.arrivals[i].ID)
	}
	return mine(c.Retiring(), g.spec.Remove) && mine(c.LearnersNext, g.spec.Demote) && mine(in, may)
}

func (g *goal) cancelledWords() string {
	words := "the cluster has the voters " + g.names.list(g.config.Voters)
	for _, id := range g.spec.Cordon {
		if m, _ := g.config.Member(id); m.Cordoned {
			name := g.names.label(id)
			words += fmt.Sprintf("; %s is cordoned: `quorate member uncordon %s` ends that", name, typed.Word(name))
		}
	}
	for _, id := range g.spec.Uncordon {
		if m, ok := g.config.Member(id); ok && !m.Cordoned {
			words += fmt.Sprintf("; %s is not cordoned any more", g.names.label(id))
		}
	}
	var gone []consensus.MemberID
	for _, id := range g.spec.Remove {
		if g.view.tombstone(id) {
			gone = append(gone, id)
		}
	}
	if len(gone) == 0 {
		return words
	}
	return fmt.Sprintf("%s %s removed before and cannot come back; %s", g.names.list(gone),
		plural.Word(len(gone), "was", "were"), words)
}
