package raft

import (
	"fmt"

	"github.com/quorate/quorate/internal/consensus/configs"
	"github.com/quorate/quorate/internal/consensus/fast"
	"github.com/quorate/quorate/internal/consensus/filter"
	"github.com/quorate/quorate/internal/consensus/raftlog"
)

// Replica is the state of one member in the protocol: its parts, each in a file of its name. Step dispatches to them.
type Replica struct {
	opts    Options
	clock   clock
	hard    hardState
	soft    softState
	out     outbox
	log     raftlog.Log
	configs configs.History
	journal journal
	cordon  configs.Cordon
	elect   election

	// Of a leader.
	peers     peerSet
	rounds    rounds
	repl      replication
	reads     leaderReads
	transfer  transfers
	changes   changes
	repeats   repeats
	admission admission

	// Of a follower.
	follower follower
	infer    inference
	forwards forwards

	fast  *fast.Path
	gate  gate
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
	r.hard.term = max(restored.Hard.Term, restored.Base.Position.Term)
	if r.hard.term == restored.Hard.Term {
		r.hard.vote = restored.Hard.Vote
	}
	if last := r.log.LastPosition(); last.Term > r.hard.term {
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
	opts, clock, log, configs := &r.opts, &r.clock, &r.log, &r.configs
	hard, soft, out, stats := &r.hard, &r.soft, &r.out, &r.stats
	r.fast = fast.New(opts.fastSettings(), log, configs)
	r.out = outbox{opts: opts, hard: hard, configs: configs}
	r.cordon.History = configs
	r.journal = journal{opts: opts, log: log, configs: configs, hard: hard, soft: soft, out: out, observer: r}
	r.elect = election{
		opts: opts, clock: clock, log: log, configs: configs, hard: hard, soft: soft, out: out, cordon: &r.cordon,
		rng: random{state: opts.Seed ^ uint64(opts.ID)*0x9e3779b97f4a7c15}, spread: 2 * opts.HeartbeatTicks,
	}
	r.peers = peerSet{opts: opts, clock: clock, log: log, configs: configs, soft: soft, cordon: &r.cordon}
	r.rounds = rounds{opts: opts, clock: clock, log: log, soft: soft, peers: &r.peers}
	r.reads = leaderReads{opts: opts, log: log, configs: configs, hard: hard, soft: soft, out: out, rounds: &r.rounds}
	r.repl = replication{
		opts: opts, clock: clock, log: log, configs: configs, hard: hard, soft: soft, out: out, stats: stats,
		journal: &r.journal, peers: &r.peers, rounds: &r.rounds, reads: &r.reads,
	}
	r.transfer = transfers{
		opts: opts, clock: clock, log: log, configs: configs, soft: soft, out: out, peers: &r.peers, rounds: &r.rounds,
		cordon: &r.cordon,
	}
	r.changes = changes{
		opts: opts, log: log, configs: configs, soft: soft, out: out, journal: &r.journal, peers: &r.peers, repl: &r.repl,
	}
	r.repeats = repeats{opts: opts, clock: clock, log: log}
	r.admission = admission{
		opts: opts, log: log, configs: configs, out: out, peers: &r.peers, repl: &r.repl, transfer: &r.transfer,
		changes: &r.changes, reads: &r.reads, fast: r.fast, repeats: &r.repeats,
	}
	r.forwards = forwards{
		opts: opts, log: log, configs: configs, hard: hard, soft: soft, out: out, stats: stats, fast: r.fast,
	}
	r.infer = inference{
		opts: opts, log: log, configs: configs, hard: hard, soft: soft, out: out, journal: &r.journal, peers: &r.peers,
		forwards: &r.forwards,
	}
	r.follower = follower{
		opts: opts, clock: clock, log: log, configs: configs, hard: hard, soft: soft, out: out, stats: stats,
		journal: &r.journal, infer: &r.infer, fast: r.fast,
	}
	r.gate = gate{
		opts: opts, clock: clock, hard: hard, soft: soft, configs: configs, stats: stats, elect: &r.elect, peers: &r.peers,
	}
}
