package raft

import (
	"slices"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/configs"
	"github.com/quorate/quorate/internal/consensus/fast"
	"github.com/quorate/quorate/internal/consensus/filter"
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

// propose adds proposals for the leader.
func (f *forwards) propose(proposals []consensus.Proposal) {
	if f.box.proposals == nil {
		f.box.proposals = proposals[:len(proposals):len(proposals)]
		return
	}
	f.box.proposals = append(f.box.proposals, proposals...)
}

// offer adds proposals for the leader and, as records, for all other voters.
func (f *forwards) offer(proposals []consensus.Proposal) { f.offered = append(f.offered, proposals...) }

// read adds reads; with spread, the other voters are asked, too.
func (f *forwards) read(ids []uint64, spread bool) {
	f.box.spread = f.box.spread || spread
	for _, id := range ids {
		f.box.reads = append(f.box.reads, consensus.ReadIndex{ID: id})
	}
}

// transfer asks the leader to transfer leadership.
func (f *forwards) transfer(to consensus.MemberID) { f.box.transfer, f.box.asks = to, true }

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
		n := consensus.Fitting(rest, f.opts.MaxMessageBytes)
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
		n := consensus.Fitting(rest, f.opts.MaxMessageBytes)
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

// handleRefusals puts them out, and binds what is proposed from now on to the configuration that the leader
// named, unless this member's log says so by now: what was refused for that alone is proposed again.
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

// handleReadReply takes the leader's answers to forwarded reads; what was given up meanwhile is not answered twice.
func (f *forwards) handleReadReply(m *consensus.Message) {
	if m.From != f.soft.leader {
		f.stats.dropped.Count(filter.ReadAnswer) // what another leader was asked was given up with it
		return
	}
	for _, answer := range m.Reads {
		at := slices.Index(f.forwarded, answer.ID)
		if at < 0 {
			continue
		}
		f.forwarded = slices.Delete(f.forwarded, at, at+1)
		if m.Reject {
			f.out.FailedReads = append(f.out.FailedReads, answer.ID)
		} else {
			f.out.Reads = append(f.out.Reads, answer)
		}
	}
}

// fail gives up the reads that a leader, no longer followed, has not answered.
func (f *forwards) fail() {
	f.out.FailedReads = append(f.out.FailedReads, f.forwarded...)
	f.forwarded = f.forwarded[:0]
}
