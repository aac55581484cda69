package sim

import (
	"encoding/binary"
	"math/rand/v2"
	"time"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/fast"
	"github.com/quorate/quorate/internal/consensus/raft"
	"github.com/quorate/quorate/internal/consensus/tally"
	"github.com/quorate/quorate/internal/datadir"
	"github.com/quorate/quorate/internal/env"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/kv/watch"
	"github.com/quorate/quorate/internal/node"
	"github.com/quorate/quorate/internal/sim/check"
	"github.com/quorate/quorate/internal/sim/diary"
	"github.com/quorate/quorate/internal/sim/dice"
	"github.com/quorate/quorate/internal/sim/disk"
	"github.com/quorate/quorate/internal/storage/engine"
	"github.com/quorate/quorate/internal/storage/wal"
)

// host is one machine and the member on it: the thin loop that package member runs in goroutines, turned into events.
type host struct {
	w     *World
	slot  int
	id    consensus.MemberID
	base  consensus.SnapshotMeta // what its data begins with
	rng   *rand.Rand
	rate  float64 // of its clock
	disk  *disk.FS
	suite *check.Suite // the world's; of impostors their own
	credentials

	vote       consensus.MemberID // last written, for the trace of actions
	toldCommit consensus.Index    // last written, for the same

	// The process, if it runs.
	alive  bool
	life   int
	begun  time.Time // by its own clock
	ticked int64     // ticks since then
	data   *datadir.Data
	node   *node.Node
	hub    *watch.Hub
	gone   bool // removed from the cluster, or never needed again

	inbox      []raft.Input
	stepping   bool
	waiting    []node.Persist // for the disk
	writing    []node.Persist
	applies    []work
	applying   bool
	leading    bool
	lessorTerm consensus.Term      // in which the deadlines of leases began
	inForce    *raft.ConfigInForce // told by the last step
	received   received
	names      int
	pilot      *pilot // of this life; nil in worlds without jobs

	frozen time.Duration // it does nothing before this time
	slow   time.Duration // extra time of each write
}

// work is entries to apply, or a snapshot to install.
type work struct {
	entries []consensus.Entry
	install *consensus.SnapshotMeta
}

// received is the snapshot that was verified last.
type received struct {
	mark consensus.Mark
	dir  string
}

const dataDir = "data"

func (h *host) options() datadir.Options {
	fs := h.disk
	return datadir.Options{
		FS: fs, Dir: dataDir, Logger: discard, SegmentBytes: h.w.plan.segments, NoSync: h.w.broken.LyingLog,
		Nonce: func() uint64 { return uint64(h.w.lives+1)<<32 | uint64(h.id) },
		OpenEngine: func(dir string) (engine.Engine, error) {
			return engine.OpenMem(engine.MemOptions{FS: fs, Dir: dir})
		},
	}
}

// after makes f happen in this life of the process, later if the process is paused then.
func (h *host) after(d time.Duration, f func()) {
	life := h.life
	var fire func()
	fire = func() {
		switch {
		case !h.alive || h.life != life:
		case h.w.Now() < h.frozen:
			h.w.After(h.frozen-h.w.Now(), fire)
		default:
			h.w.current = h
			f()
		}
	}
	h.w.After(d, fire)
}

// clock is what the member's own clock shows.
func (h *host) clock() time.Time {
	return time.Unix(1_000_000_000, 0).Add(time.Duration(float64(h.w.Now()) * h.rate))
}

// startAfter starts the process again, unless somebody did meanwhile.
func (h *host) startAfter(d time.Duration) {
	h.w.After(d, func() {
		if !h.alive && !h.gone {
			h.start()
		}
	})
}

// start opens the data as the real member does and lets the process run.
func (h *host) start() {
	h.w.current = h
	if h.w.rng.IntN(20) == 0 && !h.w.calm {
		h.disk.DieAfter(h.rng.IntN(30)) // the power fails again before it is up
	}
	switch waits, err := h.waits(); {
	case err != nil:
		h.startFailed(err)
		return
	case waits:
		return
	}
	data, err := h.open()
	if err != nil {
		h.startFailed(err)
		return
	}
	h.disk.DieAfter(-1)
	h.w.lives++
	h.alive, h.life, h.data, h.hub = true, h.w.lives, data, data.Machine.Hub()
	h.begun, h.ticked = h.clock(), 0
	h.openDoor()
	h.w.counts.Starts++
	h.w.trace.Note(h.w.Now(), h.slot, diary.Start, uint64(data.Restored.Applied), uint64(data.Restored.Hard.Term),
		uint64(len(data.Restored.Entries)), nil)
	h.suite.Recovered(h.id, data.Restored.Hard, data.Restored.Base, data.Restored.Entries, data.Restored.Applied)
	h.suite.RecoveredRecords(h.id, data.Restored.Records)
	h.vote, h.toldCommit = data.Restored.Hard.Vote, 0
	h.w.actions.started(h.id, data.Restored.Hard, data.Restored.Base.Mark, data.Restored.Entries)
	options := h.w.plan.raft
	options.ID, options.Cluster, options.Faults = h.id, clusterID, h.w.broken.Raft
	if h.w.plan.identity {
		options.Storage = h.data.Identity.Storage
	}
	options.Fast = raft.FastOptions{
		Footprint: kv.PayloadFootprint, Revises: kv.Revises,
		Fate: func(id consensus.ProposalID) fast.Fate { return node.FateOf(h.data.Machine, id) },
	}
	options.Seed += uint64(h.life)
	infers, fast := h.w.plan.settings(&options, h.w.spoil)
	node, err := node.New(node.Options{
		Raft:         options,
		FirstSession: data.Boots << 32,
		RetryTicks:   3 * options.ElectionTicks,
	}, data.Restored, h.ports())
	if err != nil {
		h.suite.Report("recovery", err.Error())
		return
	}
	h.node = node
	node.CountHolders(infers)
	node.TryFast(fast)
	h.checkConfig()
	h.w.actions.committed(h)
	h.suite.Stepped(h.id)
	h.after(dice.Between(h.rng, 0, h.w.plan.tick), h.tick)
	h.after(dice.Exponential(h.rng, h.w.plan.flush), h.flush)
	h.after(leaseScan, h.scanLeases)
	if h.epochs != nil {
		h.lookAround()
	}
	h.after(scrubPause, h.scrub)
	if h.w.plan.reconfigures {
		h.after(promoteScan, h.promote)
	}
	h.startPilot()
}

const clusterID consensus.ClusterID = 0x51

func (h *host) open() (*datadir.Data, error) {
	exists, err := datadir.Exists(h.options())
	if err != nil {
		return nil, err
	}
	if !exists {
		identity := wal.Identity{Cluster: clusterID, Member: h.id, Storage: h.storageID()}
		if err := datadir.Create(h.options(), identity, h.firstConfig()); err != nil {
			return nil, err
		}
	}
	return datadir.Open(h.options())
}

// storageID is that of the host's disk.
func (h *host) storageID() wal.StorageID { return storageOf(h.id, h.emptied) }

func storageOf(member consensus.MemberID, emptied int) (id wal.StorageID) {
	binary.BigEndian.PutUint64(id[:], uint64(member)+1000)
	id[15] = byte(emptied)
	return id
}

// startFailed tries again if the disk is to blame.
func (h *host) startFailed(err error) {
	died := h.disk.Dead()
	if !died && !h.disk.Full && !h.disk.Broken {
		h.suite.Report("recovery", err.Error())
		return
	}
	h.w.trace.Note(h.w.Now(), h.slot, diary.Fail, 0, 0, 0, err.Error)
	if died {
		h.disk = h.disk.Crash(h.crashMode(), h.rng)
	}
	h.disk.DieAfter(-1)
	h.startAfter(dice.Between(h.rng, 10*time.Millisecond, time.Second))
}

func (h *host) crashMode() disk.Mode {
	switch {
	case h.w.plan.torn && h.rng.IntN(4) > 0:
		return disk.Torn
	case h.rng.IntN(2) == 0:
		return disk.KeepAll
	}
	return disk.LoseAll
}

// crash takes the power away, in the middle of a write if there is one.
func (h *host) crash() {
	if !h.alive {
		return
	}
	h.w.current = h
	switch {
	case len(h.writing) > 0 && h.rng.IntN(4) > 0:
		h.disk.DieAfter(h.rng.IntN(4))
		_ = h.append(h.writing) // the power fails during this call or right after it
	case h.rng.IntN(8) == 0:
		h.disk.DieAfter(h.rng.IntN(8))
		_ = h.data.Engine.Flush() // likewise
	}
	h.disk = h.disk.Crash(h.crashMode(), h.rng)
	h.keepCopy()
	h.w.trace.Note(h.w.Now(), h.slot, diary.Crash, 0, 0, 0, nil)
	h.down()
}

// down forgets everything that was in memory.
func (h *host) down() {
	h.noteLoss()
	h.noteInferred()
	h.alive, h.node, h.data, h.hub = false, nil, nil, nil
	h.inbox, h.stepping, h.waiting, h.writing, h.applies, h.applying = nil, false, nil, nil, nil, false
	h.leading, h.inForce, h.received, h.frozen, h.door, h.epochs = false, nil, received{}, 0, nil, nil
	for _, other := range h.w.up() {
		if h.w.net.link(h.slot, other.slot).cuts == 0 {
			h.w.net.notice(other, h)
		}
	}
}

// fail ends the process because of an operating error, as the real member does. The disk keeps what it was given.
func (h *host) fail(err error) {
	h.w.trace.Note(h.w.Now(), h.slot, diary.Fail, 1, 0, 0, err.Error)
	if !h.disk.Full && !h.disk.Broken {
		h.suite.Report("operating-error", err.Error())
	}
	h.w.counts.Failures++
	h.disk = h.disk.Crash(disk.KeepAll, h.rng)
	h.down()
	h.startAfter(dice.Between(h.rng, 100*time.Millisecond, 4*time.Second))
}

// put leaves inputs for the next step.
func (h *host) put(inputs ...raft.Input) {
	h.inbox = append(h.inbox, inputs...)
	h.wake(h.w.plan.loop)
}

func (h *host) wake(d time.Duration) {
	if h.stepping || !h.alive {
		return
	}
	h.stepping = true
	h.after(d, h.step)
}

// step is one round of the loop.
func (h *host) step() {
	h.stepping = false
	due := h.dueTicks()
	if h.mute() {
		due = nil
	}
	inputs := append(due, h.inbox...)
	h.inbox = nil
	h.w.counts.Steps++
	from := h.node.Replica().Term()
	h.node.Step(h.clock(), inputs...)
	if h.epochs != nil && h.node.Replica().Leader() != consensus.NoMember {
		h.epochs.Led(h.w.Now())
	}
	h.checkConfig()
	h.suite.Committed(h.id, from, h.node.Replica().Term(), h.node.Replica().Commit())
	h.suite.Stepped(h.id)
	if h.node.Waiting() {
		h.wake(max(h.w.plan.loop, time.Millisecond))
	}
}

func (h *host) checkConfig() {
	if h.inForce == nil {
		return
	}
	c := h.inForce
	h.inForce = nil
	h.w.trace.Note(h.w.Now(), h.slot, diary.Config, uint64(c.ID.Index), uint64(c.ID.Term), uint64(len(c.Config.Voters)), nil)
	h.suite.Configured(h.id, c.ID, &c.Config)
	if h.door != nil {
		h.door.Configure(&c.Config)
	}
	if h.impostor != "" {
		return
	}
	h.w.configs[h.id] = *c
	h.w.pastIDs = append(h.w.pastIDs, c.ID)
}

func (h *host) tick() {
	h.after(time.Duration(float64(h.w.plan.tick)/h.rate), h.tick)
	h.wake(h.w.plan.loop)
}

// dueTicks returns the ticks that the member's clock says have passed, before whatever else waits: after a pause the
// core must know that time went on, or it would trust promises that ended meanwhile.
func (h *host) dueTicks() []raft.Input {
	passed := int64(h.clock().Sub(h.begun) / h.w.plan.tick)
	most := int64(1)
	if h.w.plan.raft.LeaderLease {
		most = int64(4 * h.w.plan.raft.ElectionTicks)
	}
	if h.w.plan.mixed {
		most *= slowest
	}
	n := min(passed-h.ticked, most)
	h.ticked = passed
	ticks := make([]raft.Input, n, n+4)
	for i := range ticks {
		ticks[i] = raft.Tick{}
	}
	return ticks
}

func (h *host) ports() node.Ports {
	return node.Ports{
		Send:    h.send,
		Persist: h.persist,
		Apply: func(entries []consensus.Entry) {
			h.w.actions.committed(h)
			h.queue(work{entries: entries})
		},
		Install:      func(meta consensus.SnapshotMeta) { h.queue(work{install: &meta}) },
		SendSnapshot: h.sendSnapshot,
		Configure:    func(c raft.ConfigInForce) { h.inForce = &c },
		Observe:      h.observe,
		Won: func(wins []tally.Win) {
			h.w.actions.decided(h.id, wins)
			h.suite.Won(h.id, wins)
		},
	}
}

// send lets messages travel, but for those to itself.
func (h *host) send(messages []consensus.Message) {
	for i := range messages {
		if messages[i].To == h.id {
			h.put(raft.Receive{Message: messages[i]})
		}
	}
	h.w.net.send(h, messages)
}

func (h *host) observe(events []raft.Event) {
	for _, event := range events {
		h.w.trace.Note(h.w.Now(), h.slot, diary.Lead, 0, 0, 0, event.String)
		switch e := event.(type) {
		case raft.BecameLeader:
			h.judgeEpoch()
			h.suite.Leader(h.id, e.Term)
			h.w.counts.Elections++
			h.lessorTerm = e.Term
			h.lead(true)
		case raft.BecameFollower:
			h.noteLoss()
			h.lead(false)
		case raft.LeaderChanged:
			h.lead(e.Leader == h.id)
		case raft.Removed:
			h.suite.Removed(h.id)
			h.w.After(h.leave(), h.retire)
		case raft.Denied:
			h.distrust(e)
		case raft.ConfigProposed, raft.ConfigCommitted, raft.ConfigUndone, raft.ConfigSettled:
			h.configEvent(event)
		}
	}
}

// leave is how long a removed member may still answer what it was asked: as long as the leader feeds it, or nobody waits.
func (h *host) leave() time.Duration {
	if h.w.plan.switchOff {
		return 0
	}
	return dice.Between(h.rng, 0, h.extension())
}

// retire stops a member that was removed, for good.
func (h *host) retire() {
	if h.gone {
		return
	}
	h.w.trace.Note(h.w.Now(), h.slot, diary.Removed, 0, 0, 0, nil)
	h.gone = true
	if h.alive {
		h.down()
	}
}

var _ env.FS = (*disk.FS)(nil)
