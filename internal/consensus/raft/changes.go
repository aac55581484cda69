package raft

import (
	"slices"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/configs"
	"github.com/quorate/quorate/internal/consensus/raftlog"
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
//	  settled       the removed get MsgRemoved: memberRemoved
//
// Whoever leads goes on with what it finds in its log, so that a change is finished or undone whoever fails.

// changes takes changes of the configuration through the log of a leader. What is under way is in the log alone.
type changes struct {
	opts    *Options
	log     *raftlog.Log
	configs *configs.History
	soft    *softState
	out     *outbox
	journal *journal
	peers   *peerSet
	repl    *replication
}

// propose turns a request into a configuration entry, or says why not.
func (s *changes) propose(p *consensus.Proposal) consensus.RefusalReason {
	request, rest, err := consensus.DecodeChangeRequest(p.Payload)
	if err != nil || len(rest) > 0 {
		return consensus.ReasonBadRequest
	}
	s.repl.advanceCommit()
	if reason := s.refuses(&request); reason != consensus.ReasonNone {
		return reason
	}
	var change consensus.ConfigChange
	reason := consensus.ReasonNone
	if request.Abort {
		change, reason = s.abort()
	} else {
		facts := s.peers.facts()
		change, reason = reconfig.Next(s.configs.Config(), s.configs.ID(), &request, &facts)
		if s.opts.Faults.DirectSwitch && change.Config.IsJoint() {
			change.Tombs, change.Config = change.Config.Retiring(), change.Config.Settle()
		}
	}
	if reason == consensus.ReasonNone {
		s.append(&change, p)
	}
	return reason
}

// refuses keeps changes apart. Two at once, or one before an entry of this term has committed, could leave two
// configurations in use whose majorities do not meet (the single-server bug of 2015).
func (s *changes) refuses(request *consensus.ChangeRequest) consensus.RefusalReason {
	if request.Expected != (consensus.ConfigID{}) && request.Expected != s.configs.ID() {
		return consensus.ReasonStaleConfig
	}
	if s.log.Commit() < s.soft.noop && !s.opts.Faults.ChangeInOldTerm {
		return consensus.ReasonChangePending
	}
	pending := !s.configs.LastSettled() || s.configs.NotApplied(s.configs.Last())
	if !request.Abort && !s.opts.Faults.TwoChanges && pending {
		return consensus.ReasonChangePending
	}
	return consensus.ReasonNone
}

// abort goes back from a joint configuration whose second entry is not in the log. Majorities of the outgoing
// voters decide in every configuration that can be in use then. It needs no more than they: the change that cannot
// commit, because the incoming majority died, is the one that has to be aborted.
func (s *changes) abort() (consensus.ConfigChange, consensus.RefusalReason) {
	if reason := s.configs.MayAbort(); reason != consensus.ReasonNone {
		return consensus.ConfigChange{}, reason
	}
	c := s.configs.Last()
	return reconfig.Abort(&c.Config, c.ID, c.Protocol), consensus.ReasonNone
}

// abortStuck takes back a joint change whose incoming voters are no longer heard: until then nothing commits, and after
// this leader nobody could take it back any more.
func (s *changes) abortStuck() {
	c := s.configs.Last()
	if !c.Config.IsJoint() || c != s.configs.InForce() || s.log.Commit() < s.soft.noop ||
		s.configs.MayAbort() != consensus.ReasonNone || s.peers.heardOf(c.Config.Voters) {
		return
	}
	change := reconfig.Abort(&c.Config, c.ID, c.Protocol)
	s.append(&change, nil)
}

// append logs a change, for the proposal p or, if p is nil, by the leader's own decision.
func (s *changes) append(change *consensus.ConfigChange, p *consensus.Proposal) {
	e := consensus.Entry{Kind: consensus.EntryConfig, Payload: consensus.AppendConfigChange(nil, change)}
	if p != nil {
		e.Proposal, e.Proposer = p.ID, p.Proposer
	}
	index := s.repl.appendEntry(e)
	s.journal.appendConfigs(s.log.Slice(index, index))
	s.out.event(ConfigProposed{ID: s.configs.Last().ID, Protocol: change.Protocol, Joint: change.Config.IsJoint()})
}

// finish takes the next step of the change that the log ends with, once the one before is safe: an entry of this
// term, and the change itself, have committed, and with protocol apply the change has been applied. Only a voter of
// the new set leaves a joint configuration; another leader hands over first.
func (s *changes) finish() {
	c := s.configs.Last()
	safe := s.log.Commit() >= s.soft.noop && s.configs.Committed(c) || s.opts.Faults.LeaveEarly && c.ID.Index < s.soft.noop
	if !safe || s.configs.LastSettled() || (c.Protocol == consensus.ProtocolApply && s.configs.NotApplied(c)) {
		return
	}
	switch {
	case c.NeedsNotice():
		if c.SettledBy == 0 && slices.Contains(s.configs.Config().Voters, s.opts.ID) {
			notice := consensus.Entry{Kind: consensus.EntryNoop, Payload: consensus.AppendConfigID(nil, c.ID)}
			c.SettledBy = s.repl.appendEntry(notice)
		}
	case slices.Contains(c.Config.Voters, s.opts.ID):
		change := reconfig.Leave(&c.Config, c.ID, c.Protocol)
		s.append(&change, nil)
	}
}
