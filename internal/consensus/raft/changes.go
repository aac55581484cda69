package raft

import (
	"slices"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/reconfig"
	"github.com/quorate/quorate/internal/consensus/rules"
)

// A change of the configuration, on the leader:
//
//	proposeChange   one at a time, and only once an entry of this term has committed
//	     |
//	 [ entry ]      in force by the rule of its protocol: reviseConfig
//	     |
//	finishChange    leaves a joint configuration, or logs the notice that the change is in force
//	     |
//	  settled       the removed members get MsgRemoved: memberRemoved
//
// Every leader goes on with the change that it finds in its log, so that a change is finished or undone whichever member fails.

// proposeChange turns a request into a configuration entry, or returns its refusal.
func (l *leader) proposeChange(p *consensus.Proposal) consensus.RefusalReason {
	request, err := consensus.DecodeChangeRequest(p.Payload)
	if err != nil {
		return consensus.ReasonBadRequest
	}
	l.advanceCommit()
	if reason := l.refusesChange(&request); reason != consensus.ReasonNone {
		return reason
	}
	var change consensus.ConfigChange
	reason := consensus.ReasonNone
	if request.Abort {
		change, reason = l.abortChange()
	} else {
		facts := l.facts()
		change, reason = reconfig.Next(l.configs.Config(), l.configs.ID(), &request, &facts)
		if l.opts.Dropped[rules.DirectSwitch] && change.Config.IsJoint() {
			change.Tombs, change.Config = change.Config.Retiring(), change.Config.Settle()
		}
	}
	if reason == consensus.ReasonNone {
		l.appendChange(&change, p)
	}
	return reason
}

// refusesChange keeps changes apart. Two at once, or one before an entry of this term has committed, could leave two
// configurations in use whose majorities do not meet (the single-server bug of 2015).
func (l *leader) refusesChange(request *consensus.ChangeRequest) consensus.RefusalReason {
	if request.Expected != (consensus.ConfigID{}) && request.Expected != l.configs.ID() {
		return consensus.ReasonStaleConfig
	}
	if !l.started() && !l.opts.Dropped[rules.ChangeInOldTerm] {
		return consensus.ReasonChangePending
	}
	pending := !l.configs.LastSettled() || l.configs.NotApplied(l.configs.Last())
	if !request.Abort && !l.opts.Dropped[rules.TwoChanges] && pending {
		return consensus.ReasonChangePending
	}
	return consensus.ReasonNone
}

// abortChange returns to the outgoing voters from a joint configuration whose second entry is not in the log. Their majorities
// decide in every configuration that can be in use then. An abort needs the outgoing voters only: the change that has to be
// aborted is the one that cannot commit because the majority of the incoming voters died.
func (l *leader) abortChange() (consensus.ConfigChange, consensus.RefusalReason) {
	if reason := l.configs.MayAbort(); reason != consensus.ReasonNone {
		return consensus.ConfigChange{}, reason
	}
	c := l.configs.Last()
	return reconfig.Abort(&c.Config, c.ID, c.Protocol), consensus.ReasonNone
}

// abortStuck aborts a joint change of whose incoming voters no majority answers any more: nothing commits until then, and no
// later leader could abort it.
func (l *leader) abortStuck() {
	c := l.configs.Last()
	if !c.Config.IsJoint() || c != l.configs.InForce() || !l.started() ||
		l.configs.MayAbort() != consensus.ReasonNone || l.heardOf(c.Config.Voters) {
		return
	}
	change := reconfig.Abort(&c.Config, c.ID, c.Protocol)
	l.appendChange(&change, nil)
}

// appendChange logs a change, for the proposal p or, if p is nil, by the leader's own decision.
func (l *leader) appendChange(change *consensus.ConfigChange, p *consensus.Proposal) {
	e := consensus.Entry{Kind: consensus.EntryConfig, Payload: consensus.AppendConfigChange(nil, change)}
	if p != nil {
		e.Proposal, e.Proposer = p.ID, p.Proposer
	}
	index := l.appendEntry(e)
	l.appendConfigs(l.log.Slice(index, index))
	l.out.event(ConfigProposed{ID: l.configs.Last().ID, Protocol: change.Protocol, Joint: change.Config.IsJoint()})
}

// finishChange takes the next step of the change that the log ends with, once the step before is safe: an entry of this term,
// and the change itself, have committed, and with protocol apply the change has been applied. Only a voter of the new set
// leaves a joint configuration; another leader hands over first.
func (l *leader) finishChange() {
	c := l.configs.Last()
	safe := l.started() && l.configs.Committed(c) || l.opts.Dropped[rules.LeaveEarly] && c.ID.Index < l.noop
	if !safe || l.configs.LastSettled() || (c.Protocol == consensus.ProtocolApply && l.configs.NotApplied(c)) {
		return
	}
	switch {
	case c.NeedsNotice():
		if c.SettledBy == 0 && slices.Contains(l.configs.Config().Voters, l.opts.ID) {
			l.appendNotice(c)
		}
	case slices.Contains(c.Config.Voters, l.opts.ID):
		change := reconfig.Leave(&c.Config, c.ID, c.Protocol)
		l.appendChange(&change, nil)
	}
}
