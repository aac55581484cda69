package raft

import (
	"slices"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/progress"
	"github.com/quorate/quorate/internal/consensus/reconfig"
)

// A change of the configuration, on the leader:
//
//	proposeChange   one at a time, and only once an entry of this term has committed
//	     |
//	 [ entry ]      in force by the rule of its protocol: reviseConfig
//	     |
//	finishChange    leaves a joint configuration, or says that the change is in force
//	     |
//	  settled       the removed are told: bury
//
// Whoever leads goes on with what it finds in its log, so that a change is finished or undone whoever fails.

// proposeChange turns a request into a configuration entry, or says why not.
func (r *Replica) proposeChange(p *consensus.Proposal) consensus.RefusalReason {
	request, rest, err := consensus.DecodeChangeRequest(p.Payload)
	if err != nil || len(rest) > 0 {
		return consensus.ReasonBadRequest
	}
	r.advanceCommit()
	if reason := r.mayChange(&request); reason != consensus.ReasonNone {
		return reason
	}
	var change consensus.ConfigChange
	reason := consensus.ReasonNone
	if request.Abort {
		change, reason = r.abortChange()
	} else {
		facts := r.facts()
		change, reason = reconfig.Next(r.configs.Config(), r.configs.ID(), &request, &facts)
	}
	if reason == consensus.ReasonNone {
		r.appendChange(&change, p)
	}
	return reason
}

// mayChange keeps changes apart. Two at once, or one before an entry of this term has committed, could leave two
// configurations in use whose majorities do not meet (the single-server bug of 2015).
func (r *Replica) mayChange(request *consensus.ChangeRequest) consensus.RefusalReason {
	if request.Expected != (consensus.ConfigID{}) && request.Expected != r.configs.ID() {
		return consensus.ReasonStaleConfig
	}
	if r.log.Commit() < r.noop && !r.opts.Faults.ChangeInOldTerm {
		return consensus.ReasonChangePending
	}
	pending := !r.configs.LastSettled() || r.configs.NotApplied(r.configs.Last())
	if !request.Abort && !r.opts.Faults.TwoChanges && pending {
		return consensus.ReasonChangePending
	}
	return consensus.ReasonNone
}

// abortChange goes back from a joint configuration whose second entry is not in the log. Majorities of the outgoing
// voters decide in every configuration that can be in use then. It needs no more than they: the change that cannot
// commit, because the incoming majority died, is the one that has to be aborted.
func (r *Replica) abortChange() (consensus.ConfigChange, consensus.RefusalReason) {
	if reason := r.configs.MayAbort(); reason != consensus.ReasonNone {
		return consensus.ConfigChange{}, reason
	}
	c := r.configs.Last()
	return reconfig.Abort(&c.Config, c.ID, c.Protocol), consensus.ReasonNone
}

// abortStuck takes back a joint change whose incoming voters are no longer heard: until then nothing commits, and after
// this leader nobody could take it back any more.
func (r *Replica) abortStuck() {
	c := r.configs.Last()
	if !c.Config.IsJoint() || c != r.configs.InForce() || r.log.Commit() < r.noop ||
		r.configs.MayAbort() != consensus.ReasonNone || r.heardOf(c.Config.Voters) {
		return
	}
	change := reconfig.Abort(&c.Config, c.ID, c.Protocol)
	r.appendChange(&change, nil)
}

// appendChange logs a change, for the proposal p or, if p is nil, by the leader's own decision.
func (r *Replica) appendChange(change *consensus.ConfigChange, p *consensus.Proposal) {
	e := consensus.Entry{Kind: consensus.EntryConfig, Payload: consensus.AppendConfigChange(nil, change)}
	if p != nil {
		e.Proposal, e.Proposer = p.ID, p.Proposer
	}
	index := r.appendEntry(e)
	r.appendConfigs(r.log.Slice(index, index))
	r.event(ConfigProposed{ID: r.configs.Last().ID, Protocol: change.Protocol, Joint: change.Config.IsJoint()})
}

// finishChange takes the next step of the change that the log ends with, once the one before is safe: an entry of this
// term, and the change itself, have committed, and with protocol apply the change has been applied. Only a voter of
// the new set leaves a joint configuration; another leader hands over first.
func (r *Replica) finishChange() {
	c := r.configs.Last()
	if r.log.Commit() < r.noop || !r.configs.Committed(c) || r.configs.LastSettled() ||
		(c.Protocol == consensus.ProtocolApply && r.configs.NotApplied(c)) {
		return
	}
	switch {
	case c.NeedsNotice():
		if c.SettledBy == 0 && slices.Contains(r.configs.Config().Voters, r.opts.ID) {
			index := r.appendEntry(consensus.Entry{Kind: consensus.EntryNoop, Payload: consensus.AppendConfigID(nil, c.ID)})
			c.SettledBy = index
		}
	case slices.Contains(c.Config.Voters, r.opts.ID):
		change := reconfig.Leave(&c.Config, c.ID, c.Protocol)
		r.appendChange(&change, nil)
	}
}

// mustHandOver reports whether this leader is no voter of the configuration to come, which has committed. Out of a joint
// configuration it steps down only for somebody who can finish it, and who has been sent all that this log holds: it
// could win the next election again, and make its log longer by a no-op every time.
func (r *Replica) mustHandOver() bool {
	if !r.retires() {
		return false
	}
	p := r.heir()
	return !r.configs.Config().IsJoint() || (p != nil && p.Next > r.log.Last())
}

func (r *Replica) retires() bool {
	return !slices.Contains(r.configs.Config().Voters, r.opts.ID) && r.configs.Committed(r.configs.InForce())
}

// heir returns the voter to hand over to, if its log is fed.
func (r *Replica) heir() *progress.Peer {
	if p := r.bestVoter(); p != nil && p.State == progress.Replicate {
		return p
	}
	return nil
}

// feedsHeir reports whether this leader only waits until all that its log holds has been sent: if it took more meanwhile,
// the change would not end as long as clients write faster than that.
func (r *Replica) feedsHeir() bool { return r.retires() && r.heir() != nil }
