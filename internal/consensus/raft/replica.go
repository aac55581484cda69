package raft

import (
	"fmt"
	"slices"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/configs"
	"github.com/quorate/quorate/internal/consensus/raftlog"
	"github.com/quorate/quorate/internal/invariant"
)

// Replica is the state of one member in the protocol. Each concern has its file: election, append, commit, read,
// snapshot, config, propose, transfer; step.go ties them together.
type Replica struct {
	opts    Options
	clock   clock
	hard    hardState
	soft    softState
	out     outbox
	log     raftlog.Log
	configs configs.History
	journal journal
	cordon  cordon
	elect   election

	peers     peerSet
	rounds    rounds
	repl      replication
	reads     leaderReads
	transfer  transfers
	changes   changes
	admission admission

	roundHeard   uint64         // of the leader
	roundNew     bool           // a new round was heard in this Step
	ackDue       bool           // appends of this Step want an acknowledgement
	echoDue      bool           // heartbeats of this Step want an answer
	conflictTold consensus.Term // a LogConflict was reported in this term
	installing   *consensus.SnapshotMeta
	infer        inference
	forwards     forwards

	fast  fastSide
	stats stats
}

// New returns a replica that goes on from what its disk holds.
func New(opts Options, restored Restored) (*Replica, error) {
	if err := opts.validate(); err != nil {
		return nil, err
	}
	r := &Replica{
		opts:    opts,
		configs: configs.New(opts.ID, opts.Storage, restored.Tombstones, opts.configFaults()),
	}
	r.wire()
	if err := r.restoreLog(&restored); err != nil {
		return nil, err
	}
	if restored.Hard.Term > maxNumber {
		return nil, fmt.Errorf("%w: term %d is beyond what elections reach", ErrRestored, restored.Hard.Term)
	}
	r.hard.term = max(restored.Hard.Term, restored.Base.Mark.Term)
	if r.hard.term == restored.Hard.Term {
		r.hard.vote = restored.Hard.Vote
	}
	if last := r.log.LastMark(); last.Term > r.hard.term {
		return nil, fmt.Errorf("%w: last entry %v, hard state of term %d", ErrRestored, last, r.hard.term)
	}
	r.hard.savedTerm, r.hard.savedVote = r.hard.term, r.hard.vote
	r.journal.restoreConfigs(&restored.Base)
	r.journal.advanceConfigs()
	if len(restored.Records) > 0 && !r.fastPath() {
		return nil, fmt.Errorf("%w: %d proposals are held, and nobody says what they touch", ErrRestored, len(restored.Records))
	}
	r.restoreRecords(&restored)
	r.elect.removed = r.configs.IsTombstone(opts.ID)
	r.elect.keepPromise(&restored.Hard)
	r.elect.resetCampaign()
	r.out.Output = Output{} // what happened before the start is no news
	return r, nil
}

// wire tells each part of the others that it uses.
func (r *Replica) wire() {
	r.out.opts, r.out.hard, r.out.configs = &r.opts, &r.hard, &r.configs
	r.cordon.opts, r.cordon.configs = &r.opts, &r.configs
	r.journal = journal{log: &r.log, configs: &r.configs, soft: &r.soft, out: &r.out, observer: r}
	r.elect = election{
		opts: &r.opts, clock: &r.clock, hard: &r.hard, soft: &r.soft, out: &r.out, log: &r.log, configs: &r.configs,
		cordon: &r.cordon,
		rng:    random{state: r.opts.Seed ^ uint64(r.opts.ID)*0x9e3779b97f4a7c15},
		spread: 2 * r.opts.HeartbeatTicks,
	}
	r.peers = peerSet{
		opts: &r.opts, clock: &r.clock, log: &r.log, configs: &r.configs, soft: &r.soft, cordon: &r.cordon,
	}
	r.rounds = rounds{opts: &r.opts, clock: &r.clock, log: &r.log, soft: &r.soft, peers: &r.peers}
	r.repl = replication{
		opts: &r.opts, clock: &r.clock, log: &r.log, configs: &r.configs, hard: &r.hard, soft: &r.soft, out: &r.out,
		journal: &r.journal, peers: &r.peers, rounds: &r.rounds, reads: &r.reads, stats: &r.stats,
	}
	r.reads = leaderReads{
		opts: &r.opts, log: &r.log, hard: &r.hard, soft: &r.soft, out: &r.out, rounds: &r.rounds,
	}
	r.transfer = transfers{
		opts: &r.opts, clock: &r.clock, log: &r.log, configs: &r.configs, soft: &r.soft, out: &r.out, peers: &r.peers,
		rounds: &r.rounds, cordon: &r.cordon,
	}
	r.changes = changes{
		opts: &r.opts, log: &r.log, configs: &r.configs, soft: &r.soft, out: &r.out, journal: &r.journal, peers: &r.peers,
		repl: &r.repl,
	}
	r.admission = admission{
		opts: &r.opts, log: &r.log, configs: &r.configs, out: &r.out, peers: &r.peers, repl: &r.repl,
		transfer: &r.transfer, changes: &r.changes,
	}
	r.forwards = forwards{
		opts: &r.opts, log: &r.log, configs: &r.configs, hard: &r.hard, soft: &r.soft, out: &r.out, stats: &r.stats,
	}
	r.infer = inference{
		opts: &r.opts, log: &r.log, configs: &r.configs, hard: &r.hard, soft: &r.soft, out: &r.out, journal: &r.journal,
		peers: &r.peers, forwards: &r.forwards,
	}
}

// restoreLog checks the log found on disk and takes it over. All of it is durable.
func (r *Replica) restoreLog(restored *Restored) error {
	base, entries := restored.Base.Mark, restored.Entries
	for i := 1; i < len(entries); i++ {
		if entries[i].Index != entries[i-1].Index+1 || entries[i].Term < entries[i-1].Term {
			return fmt.Errorf("%w: entry %v follows %v", ErrRestored, entries[i].Mark(), entries[i-1].Mark())
		}
	}
	if len(entries) > 0 && entries[0].Index > base.Index+1 {
		return fmt.Errorf("%w: log begins at %d, base is %v", ErrRestored, entries[0].Index, base)
	}
	if len(entries) > 0 && entries[0].Index <= base.Index {
		// The store was swapped for a snapshot and the log was not reset yet, or the log was not compacted yet.
		at := int(base.Index - entries[0].Index)
		if at < len(entries) && entries[at].Term == base.Term {
			entries = entries[at+1:]
		} else {
			entries = nil
		}
	}
	if len(entries) == 0 && base.Index > 0 {
		// The disk may know an older base than the store does: the first Step says where the log begins.
		meta := restored.Base
		r.journal.resetMeta = &meta
	}
	if last := base.Index + consensus.Index(len(entries)); restored.Applied > last {
		return fmt.Errorf("%w: applied %d, last entry %d", ErrRestored, restored.Applied, last)
	}
	r.log = raftlog.Restore(base, slices.Clone(entries), restored.Applied, restored.Hard.Commit, r.opts.MaxUnappliedBytes)
	r.hard.savedCommit = r.log.Commit()
	return nil
}

// checkLaws holds what every Step must leave true.
func (r *Replica) checkLaws() {
	if l := &r.log; !l.Ordered() {
		invariant.True(false, "base %d <= applied %d <= handed %d <= commit %d, durable %d <= last %d (member %v, term %d)",
			l.Base().Index, l.Applied(), l.Handed(), l.Commit(), l.Durable(), l.Last(), r.opts.ID, r.hard.term)
	}
}
