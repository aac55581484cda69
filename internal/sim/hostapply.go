package sim

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/raft"
	"github.com/quorate/quorate/internal/datadir"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/sim/diary"
	"github.com/quorate/quorate/internal/sim/dice"
	"github.com/quorate/quorate/internal/storage/snapshot"
)

const (
	leaseScan  = 500 * time.Millisecond
	scrubPause = 200 * time.Millisecond
)

// queue leaves work for the applier.
func (h *host) queue(work work) {
	h.applies = append(h.applies, work)
	h.beginApply()
}

func (h *host) beginApply() {
	if h.applying || len(h.applies) == 0 {
		return
	}
	h.applying = true
	h.after(dice.Exponential(h.rng, h.w.plan.apply), h.apply)
}

// apply does what waited when it began: runs of entries in batches of a drawn size, snapshots in between.
func (h *host) apply() {
	h.applying = false
	todo := h.applies
	h.applies = nil
	var run []consensus.Entry
	for _, w := range todo {
		if w.install == nil {
			run = append(run, w.entries...)
			continue
		}
		if !h.applyRun(run) || !h.install(*w.install) {
			return
		}
		run = nil
	}
	if h.applyRun(run) {
		h.beginApply()
	}
}

func (h *host) applyRun(entries []consensus.Entry) bool {
	for len(entries) > 0 {
		batch := entries[:min(len(entries), 1+h.rng.IntN(64))]
		entries = entries[len(batch):]
		results, err := h.applyFor(h.maybeUnnamed(batch))
		if err != nil {
			h.fail(err)
			return false
		}
		last := batch[len(batch)-1].Index
		h.w.trace.Note(h.w.Now(), h.slot, diary.Apply, uint64(last), uint64(results[len(results)-1].Revision),
			uint64(len(batch)), nil)
		h.suite.Applied(h.id, batch, results)
		h.chained(batch[0].Index, last)
		h.suite.Published(h.id, last, h.data.Machine.Store().Revision())
		h.w.counts.Applied += uint64(len(batch))
		h.node.Resolve(batch, results)
		h.put(raft.Applied{Index: last, Revision: uint64(h.data.Machine.Store().Revision())})
	}
	return true
}

// chained tells the checkers the chain at each index of a batch.
func (h *host) chained(first, last consensus.Index) {
	for index := first; index <= last; index++ {
		if mark, known := h.data.Machine.ChainAt(index); known {
			h.suite.Chained(h.id, mark.Index, mark.Sum)
		}
	}
}

// applyFor applies as a member does that answers everybody, and reads again what a repeated entry left out. What is gone with
// its history stays out.
func (h *host) applyFor(batch []consensus.Entry) ([]kv.Result, error) {
	results, err := h.data.Machine.ApplyFor(batch, func(consensus.ProposalID) kv.Room { return allRoom{} })
	for i := range results {
		if command, err := kv.DecodeCommand(batch[i].Payload); err == nil {
			h.recall(&command, &results[i])
		}
	}
	return results, err
}

func (h *host) recall(command *kv.Command, result *kv.Result) {
	if err := h.data.Machine.Recall(command, result, allRoom{}); err != nil && !errors.Is(err, kv.ErrResultGone) {
		h.fail(err)
	}
}

// allRoom is memory without bound.
type allRoom struct{}

func (allRoom) Take(int) error { return nil }
func (allRoom) Release()       {}

// maybeUnnamed gives, as a negative control, repeated proposals another id: the state machine does not know them then.
func (h *host) maybeUnnamed(batch []consensus.Entry) []consensus.Entry {
	if !h.w.broken.Sessions {
		return batch
	}
	batch = slices.Clone(batch)
	for i := range batch {
		id := &batch[i].Proposal
		if h.w.proposed[*id] != 0 && h.w.proposed[*id] != batch[i].Index && id.Sequence > 0 {
			id.Sequence += 1 << 40
			continue
		}
		h.w.proposed[*id] = batch[i].Index
	}
	return batch
}

// install puts the received snapshot in place of the store.
func (h *host) install(meta consensus.SnapshotMeta) bool {
	if h.received.dir == "" || h.received.mark != meta.Mark {
		h.put(raft.SnapshotInstalled{Meta: meta, Failed: true})
		return true
	}
	dir := h.received.dir
	h.received = received{}
	switch err := h.data.Replace(meta, dir); {
	case errors.Is(err, datadir.ErrSwitch):
		h.fail(fmt.Errorf("install %v: %w", meta.Mark, err))
		return false
	case err != nil:
		if !h.disk.Full && !h.disk.Broken {
			h.suite.Report("operating-error", err.Error())
		}
		h.put(raft.SnapshotInstalled{Meta: meta, Failed: true})
		return true
	}
	h.w.counts.Snapshots++
	h.w.trace.Note(h.w.Now(), h.slot, diary.Snapshot, uint64(meta.Mark.Index), uint64(meta.Mark.Term), 0, nil)
	h.chained(meta.Mark.Index, meta.Mark.Index)
	machine := h.data.Machine
	h.suite.Published(h.id, meta.Mark.Index, machine.Store().Revision())
	if h.leading {
		machine.Leases().Promote(h.clock(), h.extension())
	}
	var tombs []consensus.MemberID
	for _, tomb := range machine.Tombstones() {
		tombs = append(tombs, tomb.Member)
	}
	if err := h.node.Restored(meta, machine); err != nil {
		h.fail(err)
		return false
	}
	revision := uint64(machine.Store().Revision())
	h.put(raft.SnapshotInstalled{Meta: meta, Tombstones: tombs, Revision: revision})
	return true
}

func (h *host) workPath(kind string) string {
	h.names++
	return h.disk.PathJoin(dataDir, snapshot.WorkDir, fmt.Sprintf("%s-%d", kind, h.names))
}

// sendSnapshot builds a checkpoint now and lets it travel for a while.
func (h *host) sendSnapshot(to consensus.MemberID) {
	meta := h.data.Machine.SnapshotMeta()
	dir := h.workPath("outgoing")
	var stream bytes.Buffer
	err := snapshot.Build(h.data.Engine.Checkpoint, h.disk, dir)
	if err == nil {
		err = snapshot.Write(&stream, h.disk, dir)
	}
	if err != nil {
		h.after(0, func() { h.fail(err) })
		return
	}
	_ = h.disk.RemoveAll(dir) // what is left is removed at the next start
	size := stream.Len()
	sent := func(ok bool) {
		h.w.trace.Note(h.w.Now(), h.slot, diary.Snapshot, uint64(meta.Mark.Index), uint64(to), uint64(size),
			func() string { return fmt.Sprintf("sent: %t", ok) })
		h.put(raft.SnapshotSent{To: to, Mark: meta.Mark, OK: ok})
	}
	peer := h.w.hosts[to]
	travel := h.w.net.delay() + time.Duration(stream.Len())*10*time.Nanosecond + dice.Between(h.rng, 0, 100*time.Millisecond)
	h.after(travel, func() {
		if peer == nil || !peer.alive || h.w.net.link(h.slot, peer.slot).cuts > 0 || h.rng.IntN(20) == 0 ||
			!h.w.net.meet(h, peer) {
			sent(false)
			return
		}
		ok := peer.receive(meta.Mark, &stream)
		h.after(h.w.net.delay(), func() { sent(ok && h.w.net.link(peer.slot, h.slot).cuts == 0) })
	})
}

func (h *host) receive(mark consensus.Mark, stream *bytes.Buffer) bool {
	if h.w.Now() < h.frozen {
		return false
	}
	dir := h.workPath("incoming")
	err := snapshot.Receive(h.disk, stream, dir)
	if err == nil {
		err = h.data.Check(consensus.SnapshotMeta{Mark: mark}, dir)
	}
	if err != nil {
		if !h.disk.Full && !h.disk.Broken {
			h.suite.Report("recovery", fmt.Sprintf("a snapshot was refused: %v", err))
		}
		return false
	}
	if h.received.dir != "" {
		_ = h.disk.RemoveAll(h.received.dir) // what is left is removed at the next start
	}
	h.received = received{mark, dir}
	return true
}

// extension is what a new leader adds to every lease, as the real member does.
func (h *host) extension() time.Duration {
	return time.Duration(h.w.plan.raft.ElectionTicks) * h.w.plan.tick
}

func (h *host) lead(leads bool) {
	if leads == h.leading {
		return
	}
	h.leading = leads
	if leads {
		h.data.Machine.Leases().Promote(h.clock(), h.extension())
	} else {
		h.data.Machine.Leases().Demote()
	}
}

// scanLeases proposes the end of what has expired.
func (h *host) scanLeases() {
	h.after(leaseScan, h.scanLeases)
	if !h.leading {
		return
	}
	now := h.clock()
	if h.w.broken.Leases {
		now = now.Add(time.Second)
	}
	for _, id := range h.data.Machine.Leases().Expired(now, 500) {
		command := kv.Command{LeaseRevoke: &kv.LeaseRevokeOp{ID: id, Term: uint64(h.lessorTerm)}}
		if _, err := h.node.Propose(&command, completion(func(kv.Result, error) {})); err != nil {
			return
		}
	}
	h.wake(h.w.plan.loop)
}

// scrub deletes, step by step, what compactions made invisible.
func (h *host) scrub() {
	h.after(scrubPause, h.scrub)
	store := h.data.Machine.Store()
	if store.CompactedTo() >= store.CompactRevision() {
		return
	}
	if _, err := store.CompactStep(1 + h.rng.IntN(200)); err != nil {
		h.fail(err)
	}
}

type completion func(kv.Result, error)

// Complete implements proposals.Completion.
func (c completion) Complete(result kv.Result, err error) { c(result, err) }
