package membership

import (
	"fmt"
	"slices"
	"strings"

	"github.com/quorate/quorate/internal/base/plural"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/reconfig"
)

// Next tells the leader what to do now for a running job. It reads how far the job is from the configuration:
//
//	a URL is in the way?    make-room: remove who has it
//	newcomers are missing?  join: add them as learners, in one change
//	they lag?               start, snapshot, catch-up: wait
//	marks are not right?   cordon: set them and take them away, in one change
//	the leader goes?        drain: hand leadership to one that stays
//	roles are not right?    swap: promote, remove, demote and update, in one change; by protocol single one voter at a time
//	under way, not final?   decided, once no leader can undo it; settle: wait, then done
//
// So a leader that was elected a moment ago goes on where the last one stopped, and what was rolled back is done again.
func Next(j *Job, v *View) Action {
	if j.State.Ended() {
		return Action{Phase: j.Phase, Message: j.Message, End: j.State}
	}
	g := newGoal(&j.Spec, v, j.Names)
	begins := !j.begun() || j.Config == v.ID
	if j.Spec.kind() == KindDrain {
		return g.drain(j, begins)
	}
	switch {
	case j.Expired:
		return g.takeBack(j)
	case !j.CancelAsked && g.overdue(j):
		action := g.takeBack(j)
		action.Expired = true
		return action
	case !j.CancelAsked:
		return g.advance(j, begins)
	}
	if g.abortable() || !g.reached() {
		return g.undo()
	}
	action := g.advance(j, begins)
	if action.Wait && g.view.settled() && g.yields() {
		action = Action{Phase: action.Phase, Message: g.doneWords(), End: StateDone} // all that it waits for is the core
	}
	action.Message = "too late to cancel: " + action.Message
	return action
}

// advance takes the first step that is due. Nothing is judged by a configuration that may still be rolled back.
func (g *goal) advance(j *Job, begins bool) Action {
	if g.view.settled() {
		if faults := g.faults(begins); len(faults) > 0 {
			return g.fail(g.phase(), strings.Join(faults, "; "))
		}
	}
	if g.reached() {
		return g.settle(j)
	}
	if fault := g.outdated(j); fault != "" && g.view.settled() {
		return g.fail(g.phase(), fault)
	}
	switch phase := g.phase(); phase {
	case PhaseMakeRoom:
		room := g.dueRoom()
		return g.leave(phase, g.request(steps(consensus.ChangeRemove, room)), g.room,
			"removes "+g.names.list(room)+", whose URL is taken over")
	case PhaseJoin:
		if slices.ContainsFunc(j.Spec.Add, func(n Newcomer) bool { return n.ID == consensus.NoMember }) {
			return g.fail(phase, "a newcomer has no id: one is drawn when a job is accepted")
		}
		ids := g.arrivals.missing().ids()
		return g.propose(phase, g.joinRequest(), "adds "+g.names.list(ids)+" as "+plural.Word(len(ids), "a learner",
			"learners"))
	case PhaseStart, PhaseSnapshot, PhaseCatchUp:
		return Action{Phase: phase, Message: g.awaiting(), Wait: true}
	case PhaseCordon:
		return g.propose(phase, g.cordonRequest(), g.cordonMarks.words(&g.names, "s"))
	default:
		due := g.due()
		return g.leave(phase, g.swapRequest(&due), slices.Concat(g.remove, g.demote), g.swapWords(&due))
	}
}

// phase names the step that is due.
func (g *goal) phase() Phase {
	waits := g.awaited()
	switch {
	case len(g.room) > 0:
		return PhaseMakeRoom
	case len(g.arrivals.missing()) > 0:
		return PhaseJoin
	case slices.ContainsFunc(waits, unheard):
		return PhaseStart
	case slices.ContainsFunc(waits, receivesSnapshot):
		return PhaseSnapshot
	case len(waits) > 0:
		return PhaseCatchUp
	case g.cordonMarks.any():
		return PhaseCordon
	case len(g.remove)+len(g.promote)+len(g.demote) > 0:
		return PhaseSwap
	case len(g.update) > 0:
		return PhaseUpdate
	}
	return PhaseSettle
}

// notYet says why no change can be proposed at the moment; empty if one can.
func (g *goal) notYet() string {
	switch v := g.view; {
	case !v.TermStarted:
		return fmt.Sprintf("waits until the new leader %s has committed its first entry", g.names.label(v.Leader))
	case !v.settled():
		return fmt.Sprintf("waits until the change under way (config %v by %v) is final", v.ID, v.Protocol)
	}
	return ""
}

// propose asks for a change if the leader would take it; else it waits for what time can cure, and fails otherwise.
func (g *goal) propose(phase Phase, request *consensus.ChangeRequest, words string) Action {
	if why := g.notYet(); why != "" {
		return Action{Phase: phase, Message: why, Wait: true}
	}
	facts := g.view.facts()
	_, reason := reconfig.Next(&g.view.Config, g.view.ID, request, &facts)
	switch reason {
	case consensus.ReasonNone:
		return Action{Phase: phase, Message: words, Change: request}
	case consensus.ReasonQuorumLost, consensus.ReasonLearnerLags, consensus.ReasonUnbound:
		return Action{Phase: phase, Message: "waits, for " + g.refusal(reason, request), Wait: true}
	}
	return g.fail(phase, g.refusal(reason, request))
}

// leave proposes a change by which members lose their vote. A leader among them hands over before, if a voter that stays can
// lead at once, so that writes do not wait for it later. Otherwise the core hands over when the change has committed.
func (g *goal) leave(phase Phase, request *consensus.ChangeRequest, going []consensus.MemberID, words string) Action {
	action := g.propose(phase, request, words)
	if action.Change == nil || !slices.Contains(going, g.view.Leader) {
		return action
	}
	to := g.successor()
	if to == consensus.NoMember {
		return action
	}
	if phase != PhaseMakeRoom {
		phase = PhaseDrain
	}
	return Action{Phase: phase, Message: g.handOverWords(to), Transfer: to}
}

// successor returns the voter that is to lead: of those that stay and could at once, the one with most of the log.
func (g *goal) successor() consensus.MemberID {
	best := MemberView{}
	for _, m := range g.successors() {
		if best.ID == consensus.NoMember || m.Match > best.Match {
			best = m
		}
	}
	return best.ID
}

func (g *goal) successors() []MemberView {
	var able []MemberView
	for _, id := range g.config.Voters {
		m, _ := g.view.Member(id)
		if id != g.view.Leader && !g.roles.leaving(id) && !slices.Contains(g.spec.Drain, id) && !g.config.Cordoned(id) &&
			m.Active && m.CaughtUp && m.State != MarkedCorrupt {
			able = append(able, m)
		}
	}
	return able
}

// settle waits until no leader can undo the change, and ends the job.
func (g *goal) settle(j *Job) Action {
	if !g.view.settled() {
		phase := g.ending(j)
		return Action{Phase: phase, Message: g.settling(phase), Wait: true}
	}
	if g.yields() {
		return Action{Phase: PhaseSettle, Message: g.yieldWords(), Wait: true}
	}
	return Action{Phase: PhaseSettle, Message: g.doneWords(), End: StateDone}
}

// ending is the phase of a job whose last change is in force and not settled. A decision stays, also while C(new) has not
// committed.
func (g *goal) ending(j *Job) Phase {
	switch {
	case !g.spec.revotes():
		return PhaseSettle
	case j.Phase == PhaseDecided || g.view.decided():
		return PhaseDecided
	}
	return PhaseSwap
}

// Told returns jobs as they are to be shown by what the leader knows: a change that is decided says so before its job's row
// does, which takes another commit. It leaves jobs alone.
func Told(jobs []Job, v *View) []Job {
	told := slices.Clone(jobs)
	for i := range told {
		j := &told[i]
		if j.State != StateRunning || j.Phase != PhaseSwap {
			continue
		}
		if now := Next(j, v); now.Phase == PhaseDecided {
			j.Phase, j.Message = now.Phase, now.Message
		}
	}
	return told
}

// yields reports whether the leader was cordoned by this job, and is about to hand over: the core does so by itself.
func (g *goal) yields() bool {
	leader := g.view.Leader
	return slices.Contains(g.spec.Cordon, leader) && g.config.Cordoned(leader) && g.successor() != consensus.NoMember
}

func (g *goal) fail(phase Phase, why string) Action {
	if left := g.own(); len(left) > 0 {
		why += "; " + g.names.list(left) + plural.Word(len(left), " stays a learner", " stay learners") +
			": remove " + plural.Word(len(left), "it", "them") + ", or ask for the change again"
	}
	return Action{Phase: phase, Message: why, End: StateFailed}
}

// outdated tells whether the job was planned for another configuration than it began with.
func (g *goal) outdated(j *Job) string {
	began := j.Config
	if !j.begun() {
		began = g.view.ID
	}
	if j.Spec.Stale(began) {
		return expectedWords(began, j.Spec.Expected)
	}
	return ""
}

// drain hands leadership on until no member of the Spec leads.
func (g *goal) drain(j *Job, begins bool) Action {
	act := func(message string) Action { return Action{Phase: PhaseDrain, Message: message} }
	faults := []string(nil)
	if g.view.settled() {
		faults = g.faults(begins)
	}
	leads := slices.Contains(g.spec.Drain, g.view.Leader)
	to := g.successor()
	action := act("")
	switch why := g.notYet(); {
	case len(faults) > 0:
		return g.fail(PhaseDrain, strings.Join(faults, "; "))
	case !leads && j.CancelAsked:
		action = act(fmt.Sprintf("too late to cancel: %s leads", g.names.label(g.view.Leader)))
		action.End = StateDone
	case !leads:
		action = act(fmt.Sprintf("%s leads", g.names.label(g.view.Leader)))
		action.End = StateDone
	case j.CancelAsked:
		action = act(fmt.Sprintf("%s still leads", g.names.label(g.view.Leader)))
		action.End = StateCancelled
	case g.view.settled() && g.outdated(j) != "":
		return g.fail(PhaseDrain, g.outdated(j))
	case why != "":
		action = act(why)
		action.Wait = true
	case to == consensus.NoMember:
		action = act(g.noSuccessorWords())
		action.Wait = true
	default:
		action = act(g.handOverWords(to))
		action.Transfer = to
	}
	return action
}
