package lab

import (
	"slices"
	"time"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/raft"
	"github.com/quorate/quorate/internal/consensus/rules"
)

// operator requests the change from the leader, again where that helps, and follows its outcome. It does not ask again once the
// change is in a log: the next leader finishes it or has never received it.
type operator struct {
	w        *world
	requests []request
	at       int // index of the present request
	number   uint64
	phase    phase
	protocol consensus.Protocol
	reason   consensus.RefusalReason // of the last refusal

	askedAt, doneAt, settledAt time.Duration // of the whole change; zero: not yet
	begunAt                    time.Duration // of this request
}

// request is one change of the configuration.
type request struct {
	steps   []consensus.ChangeStep
	target  []memberID // voters afterwards, sorted
	leaving []memberID
}

type phase uint8

const (
	phaseIdle    phase = iota
	phaseAsking        // not in a log yet
	phaseLogged        // by a leader
	phaseDone          // as the protocol sees it
	phaseSettled       // members that leave may be switched off
	phaseLost          // undone, or never logged by a leader that lasted
	phaseRefused       // for good
)

func changeInput(number uint64, r *consensus.ChangeRequest) raft.Input {
	return raft.ChangeConfig{Proposal: consensus.Proposal{
		ID: consensus.ProposalID{Session: operatorSession, Sequence: number}, Payload: consensus.AppendChangeRequest(nil, r),
	}}
}

func (o *operator) begin(protocol consensus.Protocol, requests []request) {
	o.protocol, o.requests, o.number = protocol, requests, 1
	o.next()
}

func (o *operator) current() *request { return &o.requests[o.at] }

func (o *operator) next() {
	o.phase, o.begunAt = phaseAsking, o.w.Now()
	o.number++ // the earlier request is in the log
	if o.at == 0 {
		o.w.stages.target = o.current().target
	}
	o.w.journal.add(KindRequest, consensus.NoMember, "operator asks for %s by %s", describeSteps(o.current().steps),
		o.w.broken.named(o.protocol))
	o.ask()
}

func (o *operator) ask() {
	if o.phase != phaseAsking {
		return
	}
	leader := o.w.leader()
	if leader == nil || o.w.Now()-o.begunAt > o.w.tick*patienceTicks {
		o.again()
		return
	}
	o.number++
	leader.step(changeInput(o.number, &consensus.ChangeRequest{Steps: o.current().steps, Protocol: o.protocol}))
}

// patienceTicks is how long the operator, and the calm after a run, wait for progress.
const patienceTicks = 200

func (o *operator) again() {
	if o.w.Now()-o.begunAt > o.w.tick*patienceTicks {
		o.phase = phaseRefused
		return
	}
	o.w.After(o.w.tick, o.ask)
}

// refused asks again if that may help.
func (o *operator) refused(m *member, reason consensus.RefusalReason) {
	if o.phase != phaseAsking {
		o.w.journal.add(KindRefused, m.id, "%v refuses: %v", m.id, reason)
		return
	}
	if reason != o.reason {
		o.w.journal.add(KindRefused, m.id, "%v refuses: %v", m.id, reason)
	}
	o.reason = reason
	switch reason {
	case consensus.ReasonNoLeader, consensus.ReasonBusy, consensus.ReasonChangePending, consensus.ReasonLearnerLags,
		consensus.ReasonQuorumLost:
		o.again()
	default:
		o.phase = phaseRefused
	}
}

// noteLogged looks for the request in a log, also of a member that is about to crash.
func (o *operator) noteLogged(m *member) {
	if o.phase != phaseAsking || !o.logged(m) {
		return
	}
	o.phase = phaseLogged
	if o.askedAt == 0 {
		o.askedAt = o.w.Now()
	}
}

// decidesEarly reports whether a change by this protocol cannot be undone once its first entry has committed, though it is
// joint: by joint-early, and by apply, which has no abort.
func decidesEarly(p consensus.Protocol) bool {
	return p == consensus.ProtocolJointEarly || p == consensus.ProtocolApply
}

// decided notes that the first entry of a change has committed, which by some protocols decides the change. The same step may
// log C(new) as well, so that the member's status does not show the first entry any more. An entry that was taken back commits,
// too.
func (o *operator) decided(m *member, id consensus.ConfigID) {
	for i := range m.log {
		if e := &m.log[i]; e.Index == id.Index && isConfig(*e) && o.phase == phaseLogged && !tookBack(m) {
			change, err := consensus.DecodeConfigChange(e.Payload)
			if err == nil && decidesEarly(change.Protocol) && change.Config.IsJoint() {
				o.phase = phaseDone
				o.done(m, false)
			}
		}
	}
}

// watch checks a member after each of its steps.
func (o *operator) watch(m *member) {
	if len(o.requests) == 0 || !m.running() {
		return
	}
	in := &m.status
	there := slices.Equal(in.Config.Voters, o.current().target) && in.ConfigCommitted
	early := decidesEarly(in.Protocol)
	settled := there && !in.Config.IsJoint() && in.ConfigSettled
	if o.w.broken.switched && in.ConfigID.Stage > 0 {
		settled = settled && m.enoughSwitched()
	}
	if o.phase == phaseLogged && there && (!in.Config.IsJoint() || early) {
		o.phase = phaseDone
		o.done(m, settled)
	}
	if o.phase == phaseDone && settled {
		o.phase = phaseSettled
		o.settled(m)
	}
	if o.phase == phaseLogged && o.lostAt(in) {
		o.lost(m)
	}
}

// logged reports whether the request is an entry of this leader's log.
func (o *operator) logged(m *member) bool {
	return len(m.log) > 0 && slices.ContainsFunc(m.log, func(e entry) bool {
		return isConfig(e) && e.Proposal.Session == operatorSession && e.Proposal.Sequence == o.number
	})
}

// lostAt reports whether a leader that has committed entries of its own never received the change, or took it back.
func (o *operator) lostAt(in *raft.Status) bool {
	return in.Role == raft.Leader && in.TermStarted && in.ConfigSettled && in.Applied >= in.Commit &&
		(!o.logged(o.w.member(in.ID)) || tookBack(o.w.member(in.ID)))
}

// tookBack reports whether the last change in a log aborts the one before.
func tookBack(m *member) bool {
	for _, e := range slices.Backward(m.log) {
		if isConfig(e) {
			change, err := consensus.DecodeConfigChange(e.Payload)
			return err == nil && change.Abort
		}
	}
	return false
}

// lost notes that a change is undone. One of several changes is requested again: half of them would give neither the old nor
// the new configuration.
func (o *operator) lost(m *member) {
	o.phase = phaseLost
	o.w.journal.add(KindNote, m.id, "the change is undone: %s holds", o.w.names.full(m.status.ConfigID, &m.status.Config))
	if o.at > 0 {
		o.phase = phaseIdle
		o.w.After(o.w.delay, o.next)
	}
}

func (o *operator) done(m *member, settled bool) {
	o.doneAt = o.w.Now()
	if !settled {
		o.w.journal.add(KindDone, m.id, "the change is done, as %v knows", m.id)
	}
	if o.w.broken.dropped[rules.OffBeforeSettled] {
		o.off("switched off, for the change is done")
	}
}

func (o *operator) settled(m *member) {
	o.settledAt = o.w.Now()
	text := "the change is done and settled, as %v knows"
	if o.doneAt < o.settledAt {
		text = "the change is settled, as %v knows"
	}
	if len(o.current().leaving) > 0 {
		text += ": who left may be switched off"
	}
	o.w.journal.add(KindSettledDone, m.id, text, m.id)
	o.off("removed, its process ends")
	if o.at+1 < len(o.requests) {
		o.at++
		o.w.After(o.w.delay, o.next)
	}
}

// off switches off the leaving members, a little later: their last messages are under way.
func (o *operator) off(why string) {
	for _, id := range o.current().leaving {
		m := o.w.member(id)
		end := func() { m.switchOff(id.String() + ": " + why) }
		if o.w.broken.dropped[rules.OffBeforeSettled] {
			end()
			continue
		}
		o.w.After(4*o.w.delay, end)
	}
}

// idle reports whether the operator has nothing more to do.
func (o *operator) idle() bool {
	switch o.phase {
	case phaseSettled:
		return o.at+1 == len(o.requests)
	case phaseLost, phaseRefused:
		return true
	}
	return false
}
