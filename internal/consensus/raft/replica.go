package raft

import (
	"fmt"

	"github.com/quorate/quorate/internal/consensus/configs"
	"github.com/quorate/quorate/internal/consensus/fast"
	"github.com/quorate/quorate/internal/consensus/filter"
	"github.com/quorate/quorate/internal/consensus/raftlog"
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

	follower follower
	infer    inference
	forwards forwards
	gate     gate

	fast  *fast.Path
	stats stats
}

// New returns a replica that continues from what its disk has.
func New(opts Options, restored Restored) (*Replica, error) {
	if err := opts.validate(); err != nil {
		return nil, err
	}
	r := &Replica{
		opts:    opts,
		configs: configs.New(opts.ID, opts.Storage, restored.Tombstones, opts.configFaults()),
	}
	r.wire()
	if err := r.journal.restoreLog(&restored); err != nil {
		return nil, err
	}
	if restored.Hard.Term > filter.MaxNumber {
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
	if len(restored.Records) > 0 && !r.fast.Enabled() {
		return nil, fmt.Errorf("%w: %d proposals are held, and nobody says what they touch", ErrRestored, len(restored.Records))
	}
	r.fast.Restore(restored.Revision, restored.Records)
	r.elect.removed = r.configs.IsTombstone(opts.ID)
	r.elect.keepPromise(&restored.Hard)
	r.elect.resetCampaign()
	r.out.Output = Output{} // what happened before the start is no news
	return r, nil
}

// wire makes the parts, each with the others that it uses.
func (r *Replica) wire() {
	r.fast = fast.New(r.opts.fastSettings(), &r.log, &r.configs)
	r.out.opts, r.out.hard, r.out.configs = &r.opts, &r.hard, &r.configs
	r.cordon.opts, r.cordon.configs = &r.opts, &r.configs
	r.journal = journal{log: &r.log, configs: &r.configs, hard: &r.hard, soft: &r.soft, out: &r.out, observer: r, opts: &r.opts}
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
		transfer: &r.transfer, changes: &r.changes, fast: r.fast,
	}
	r.forwards = forwards{
		opts: &r.opts, log: &r.log, configs: &r.configs, hard: &r.hard, soft: &r.soft, out: &r.out, stats: &r.stats,
		fast: r.fast,
	}
	r.infer = inference{
		opts: &r.opts, log: &r.log, configs: &r.configs, hard: &r.hard, soft: &r.soft, out: &r.out, journal: &r.journal,
		peers: &r.peers, forwards: &r.forwards,
	}
	r.follower = follower{
		opts: &r.opts, clock: &r.clock, log: &r.log, configs: &r.configs, hard: &r.hard, soft: &r.soft, out: &r.out,
		journal: &r.journal, infer: &r.infer, fast: r.fast, stats: &r.stats,
	}
	r.gate = gate{
		opts: &r.opts, clock: &r.clock, hard: &r.hard, soft: &r.soft, configs: &r.configs, elect: &r.elect,
		peers: &r.peers, stats: &r.stats,
	}
}
