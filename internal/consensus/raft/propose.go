package raft

import (
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/configs"
	"github.com/quorate/quorate/internal/consensus/fast"
	"github.com/quorate/quorate/internal/consensus/raftlog"
	"github.com/quorate/quorate/internal/consensus/readindex"
)

// forwards is what this member sends to the leader for itself, and the reads that were not answered yet.
type forwards struct {
	opts    *Options
	log     *raftlog.Log
	configs *configs.History
	hard    *hardState
	soft    *softState
	out     *outbox
	stats   *stats
	fast    *fast.Path

	box       forwardBox
	offered   []consensus.Proposal // of this Step, for the leader and all other voters
	forwarded []uint64             // reads sent to the leader and not answered yet
	logEnds   readindex.Majority
}

// forwardBox gathers what this member forwards to the leader in one Step.
type forwardBox struct {
	proposals []consensus.Proposal
	reads     []consensus.ReadIndex
	transfer  consensus.MemberID
	spread    bool // ask for reads more voters than the leader
	asks      bool // transfer is meant, even if it names nobody
}

// admission takes proposals into the leader's log.
type admission struct {
	opts     *Options
	log      *raftlog.Log
	configs  *configs.History
	out      *outbox
	peers    *peerSet
	repl     *replication
	transfer *transfers
	changes  *changes
	fast     *fast.Path
}

// propose takes this member's own proposals: into the log, to the leader, or back.
func (r *Replica) propose(proposals []consensus.Proposal) {
	switch {
	case r.soft.role == Leader:
		r.admission.admit(proposals, r.opts.ID)
	case r.soft.leader != consensus.NoMember:
		if r.forwards.box.proposals == nil {
			r.forwards.box.proposals = proposals[:len(proposals):len(proposals)]
		} else {
			r.forwards.box.proposals = append(r.forwards.box.proposals, proposals...)
		}
	default:
		r.out.refuseAll(proposals, r.opts.ID, consensus.ReasonNoLeader)
	}
}

func (r *Replica) handlePropose(m *consensus.Message) {
	if r.soft.role == Leader {
		r.admission.admitBound(m)
		return
	}
	r.out.refuseAll(m.Proposals, m.From, consensus.ReasonNoLeader) // never forwarded twice: two members could play ball
}

// admitBound admits commands only if their proposer believes in the configuration in force. Changes say themselves what
// they expect.
func (a *admission) admitBound(m *consensus.Message) {
	if m.Config == (consensus.ConfigID{}) || m.Config == a.configs.ID() {
		a.admit(m.Proposals, m.From)
		return
	}
	for i := range m.Proposals {
		p := &m.Proposals[i]
		if p.Kind == consensus.EntryConfig {
			a.admit(m.Proposals[i:i+1], m.From)
			continue
		}
		a.out.refuse(p.ID, m.From, consensus.ReasonStaleConfig)
	}
}

// admitFast appends proposals, at once fixed to a revision if nothing stands in the way, and else as any other.
func (a *admission) admitFast(v *fast.View, m *consensus.Message) {
	for i := range m.Proposals {
		p := &m.Proposals[i]
		entry, why := a.fast.Admit(v, p, m.Term)
		switch why {
		case consensus.RefusedNot:
			entry.Index, entry.Term = a.repl.appendEntry(entry), v.Term
			a.owe(p.Proposer, entry.Index)
			a.fast.Evaluate(v, m.From, entry)
			continue
		case consensus.RefusedKnown:
			// Whoever proposed it learns of its end when it is applied. A second entry would change nothing.
		default:
			a.admit(m.Proposals[i:i+1], m.From)
		}
		a.out.refuseFast(p.ID, m.From, why)
	}
}

// handleRefusals hands them to the shell, and binds what is proposed from now on to the configuration that the leader
// named, unless this member's log says so by now: the shell proposes again what was refused for that alone.
func (f *forwards) handleRefusals(m *consensus.Message) {
	for i := range m.Refusals {
		if m.Refusals[i].Reason != consensus.ReasonStaleConfig || m.From != f.soft.leader {
			continue
		}
		if f.soft.boundTo = m.Refusals[i].Config; f.soft.boundTo == f.configs.ID() {
			f.soft.boundTo = consensus.ConfigID{}
		}
	}
	f.out.Refusals = append(f.out.Refusals, m.Refusals...)
}

// admit appends proposals to the leader's log.
func (a *admission) admit(proposals []consensus.Proposal, from consensus.MemberID) {
	for i := range proposals {
		p := &proposals[i]
		if reason := a.admitOne(p); reason != consensus.ReasonNone {
			a.out.refuse(p.ID, from, reason)
		}
	}
}

func (a *admission) admitOne(p *consensus.Proposal) consensus.RefusalReason {
	switch {
	case a.transfer.target != consensus.NoMember || (p.Kind == consensus.EntryCommand && a.transfer.feedsHeir()):
		return consensus.ReasonNoLeader
	case p.Kind != consensus.EntryCommand && p.Kind != consensus.EntryConfig:
		return consensus.ReasonBadRequest
	case a.log.Uncommitted() > 0 && a.log.Uncommitted()+len(p.Payload) > a.opts.MaxUncommittedBytes,
		a.log.Full() && p.Kind == consensus.EntryCommand:
		return consensus.ReasonBusy
	case p.Kind == consensus.EntryConfig:
		return a.changes.propose(p)
	}
	index := a.repl.appendEntry(consensus.Entry{
		Kind: p.Kind, Proposal: p.ID, Proposer: p.Proposer, Payload: p.Payload,
	})
	a.owe(p.Proposer, index)
	return consensus.ReasonNone
}

// flush sends what waits for the leader; leadership may have moved within the Step.
func (f *forwards) flush() {
	box := f.box
	f.box = forwardBox{}
	if f.soft.leader == consensus.NoMember || f.soft.leader == f.opts.ID {
		f.out.refuseAll(box.proposals, f.opts.ID, consensus.ReasonNoLeader)
		for _, read := range box.reads {
			f.out.FailedReads = append(f.out.FailedReads, read.ID)
		}
		return
	}
	for rest := box.proposals; len(rest) > 0; {
		n := fitting(rest, f.opts.MaxMessageBytes)
		f.out.send(consensus.Message{
			Kind: consensus.MsgPropose, To: f.soft.leader, Config: f.soft.boundTo, Proposals: rest[:n:n],
		}, false)
		rest = rest[n:]
	}
	if len(box.reads) > 0 {
		m := consensus.Message{Kind: consensus.MsgRead, To: f.soft.leader, Reads: box.reads}
		if box.spread {
			m.Query = f.askVoters(box.reads)
		}
		f.out.send(m, false)
		for _, read := range box.reads {
			f.forwarded = append(f.forwarded, read.ID)
		}
	}
	if box.asks {
		f.out.send(consensus.Message{Kind: consensus.MsgTransfer, To: f.soft.leader, Target: box.transfer}, false)
	}
}

// flushFast sends what was offered in this Step; leadership may have moved within it.
func (f *forwards) flushFast() {
	rest := f.offered
	f.offered = nil
	if len(rest) > 0 && (f.soft.leader == consensus.NoMember || f.soft.leader == f.opts.ID) {
		f.out.refuseAll(rest, f.opts.ID, consensus.ReasonNoLeader)
		return
	}
	for len(rest) > 0 {
		n := fitting(rest, f.opts.MaxMessageBytes)
		batch := rest[:n:n]
		rest = rest[n:]
		f.out.send(consensus.Message{Kind: consensus.MsgFastPropose, To: f.soft.leader, Proposals: batch}, false)
		for _, id := range f.configs.Config().Voters {
			if id != f.soft.leader {
				f.out.send(consensus.Message{Kind: consensus.MsgRecord, To: id, Proposals: batch}, false)
			}
		}
	}
}

// fitting returns how many of proposals go into one message of about maxBytes, at least one.
func fitting(proposals []consensus.Proposal, maxBytes int) int {
	n, size := 1, len(proposals[0].Payload)
	for n < len(proposals) && size+len(proposals[n].Payload) <= maxBytes {
		size += len(proposals[n].Payload)
		n++
	}
	return n
}
