package raft

import (
	"fmt"

	"github.com/quorate/quorate/internal/base/invariant"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/configs"
	"github.com/quorate/quorate/internal/consensus/raftlog"
)

// Only this file changes the log, and the configurations that derive from it.

// appendEntry puts an entry at the end of the leader's log. A configuration entry needs appendConfigs, too.
func (l *leader) appendEntry(e consensus.Entry) consensus.Index {
	e.Index, e.Term = l.log.Last()+1, l.hard.term
	l.log.Append(e)
	return e.Index
}

// appendNotice logs that a change is in force, which settles it.
func (l *leader) appendNotice(c *configs.Record) {
	c.SettledBy = l.appendEntry(consensus.Entry{Kind: consensus.EntryNoop, Payload: consensus.AppendConfigID(nil, c.ID)})
}

// append adds a leader's entries to a follower's log.
func (r *Replica) append(entries []consensus.Entry) {
	r.log.Append(entries...)
	r.appendConfigs(entries)
}

// truncate drops the entries from from on, none of which has committed.
func (r *Replica) truncate(from consensus.Index) {
	r.out.event(Truncated{From: from, Last: r.log.Last()})
	r.fast.Truncate(from, r.clock.now)
	r.log.Truncate(from)
	r.truncateConfigs(from)
}

// resetTo begins the log anew after an installed snapshot.
func (r *Replica) resetTo(meta *consensus.SnapshotMeta) {
	if r.lead != nil {
		return // a leader's log reaches further than any snapshot of its term
	}
	r.fast.Truncate(r.log.Base().Index+1, r.clock.now)
	r.log.Reset(meta.Position)
	r.follow.matched = meta.Position.Index
	r.restoreConfigs(meta)
	kept := *meta
	r.resetMeta = &kept
	r.out.event(LogReset{Position: meta.Position})
}

// installedTo notes that a snapshot was installed up to an index that the log has reached: the log is kept.
func (r *Replica) installedTo(index consensus.Index) {
	r.commitTo(index)
	r.log.Installed(index)
	r.configs.ApplyTo(r.log.Applied())
	r.reviseConfig() // a change by protocol apply may have been applied by the snapshot
}

// applyTo notes up to which index the state machine has applied.
func (r *Replica) applyTo(index consensus.Index) {
	r.log.ApplyTo(index, r.clock.now)
	r.configs.ApplyTo(index)
}

// compact drops applied entries from the log, except those that the leader's followers need.
func (r *Replica) compact(index consensus.Index) {
	index = min(index, r.log.Applied())
	if r.lead != nil {
		index = r.lead.keepForSnapshots(index)
	}
	r.log.Compact(index)
	r.configs.Compact(r.log.Base().Index)
}

// persist makes one request of all changes that must reach the disk.
func (r *Replica) persist() {
	reset := r.resetMeta
	entries := r.log.Unsent()
	if !r.hard.changed() && !entries && reset == nil && !r.fast.Due() {
		return
	}
	r.out.Seq, r.out.Reset, r.resetMeta = r.hard.request(), reset, nil
	r.out.Records = r.fast.TakeChanges()
	// The commit index is written along with other changes.
	if r.hard.changed() || (entries && r.log.Commit() != r.hard.savedCommit) || reset != nil {
		r.out.Hard = r.hard.save(r.log.Commit())
	}
	r.out.Entries = r.log.Write(r.out.Seq, r.clock.now)
}

// handOut hands entries to the state machine that are committed and durable here.
func (r *Replica) handOut() {
	if !r.log.Writing() {
		// no persist request is under way for which these would wait
		r.out.Send = append(r.out.Send, r.out.SendAfter...)
		r.out.SendAfter = nil
	}
	if r.installing == nil {
		r.out.Apply = r.log.HandOut(r.opts.MaxApplyingBytes, r.clock.now)
	}
}

// persisted notes that the persist requests up to seq are durable.
func (r *Replica) persisted(seq uint64, took uint32) {
	r.hard.done(seq)
	r.log.Persisted(seq)
	r.fast.CountOwn(r.hard.doneSeq, took)
	r.releaseHeld()
}

// restoreConfigs derives the configurations from the log and from the position after which it begins.
func (r *Replica) restoreConfigs(base *consensus.SnapshotMeta) {
	r.configs.Reset(base, r.log.Commit(), r.log.Applied())
	r.pushConfigs(r.log.Slice(r.log.Base().Index+1, r.log.Last()))
	r.reviseConfig()
}

// pushConfigs adds the configurations of entries, and commits those that the entries prove to be committed.
func (r *Replica) pushConfigs(entries []consensus.Entry) {
	for i := range entries {
		if proven := r.configs.Append(&entries[i]); proven > 0 {
			r.commitTo(min(proven, r.log.Last()))
		}
	}
}

// appendConfigs adds the configurations of new entries.
func (r *Replica) appendConfigs(entries []consensus.Entry) {
	before := r.configs.Len()
	r.pushConfigs(entries)
	if r.configs.Len() > before {
		r.reviseConfig()
	}
}

// truncateConfigs drops the configurations of the entries from index from on.
func (r *Replica) truncateConfigs(from consensus.Index) {
	for _, id := range r.configs.Truncate(from) {
		r.out.event(ConfigUndone{ID: id})
	}
	r.reviseConfig()
}

// reviseConfig acts on a configuration that came into force.
func (r *Replica) reviseConfig() {
	if r.configs.Revise() {
		r.boundTo = consensus.ConfigID{}
		r.configChanged()
	}
}

// commitTo notes that all entries up to index are committed, and their configurations with them.
func (r *Replica) commitTo(index consensus.Index) {
	if index <= r.log.Commit() {
		return
	}
	r.out.Commit = Commit{Upto: index}
	r.log.CommitTo(index)
	r.advanceConfigs()
}

// commitFor is commitTo, with what the commit waited for.
func (r *Replica) commitFor(index consensus.Index, waited consensus.Waited) {
	if index > r.log.Commit() {
		r.commitTo(index)
		r.out.Commit.Waited = waited
	}
}

// advanceConfigs reports the configurations that the commit index committed or settled, and the members that they removed.
func (r *Replica) advanceConfigs() {
	for _, m := range r.configs.CommitTo(r.log.Commit()) {
		if m.Committed {
			r.out.event(ConfigCommitted{ID: m.ID})
		}
		if m.Settled {
			r.out.event(ConfigSettled{ID: m.ID})
		}
		for _, id := range m.Removed {
			r.memberRemoved(id)
		}
	}
	r.reviseConfig()
}

// configChanged acts on another configuration in force.
func (r *Replica) configChanged() {
	in := r.InForce()
	r.out.Config = &in
	r.fast.ResetTally()
	if r.lead != nil {
		r.lead.syncPeers()
	}
	r.delayCampaign()
}

// memberRemoved notes that a committed change removed a member for ever.
func (r *Replica) memberRemoved(id consensus.MemberID) {
	r.configs.AddTombstone(id)
	if id == r.opts.ID && !r.elect.removed {
		r.elect.removed = true
		r.out.event(Removed{By: r.opts.ID})
	}
	if p := r.fed(id); p != nil {
		p.LeavesAt = r.clock.now + uint64(r.opts.ElectionTicks)
		r.sendInTerm(consensus.Message{Kind: consensus.MsgRemoved, To: id})
	}
}

// restoreLog takes the log from the disk.
func (r *Replica) restoreLog(restored *Restored) error {
	base := restored.Base.Position
	log, err := raftlog.Restore(base, restored.Entries, restored.Applied, restored.Hard.Commit, r.opts.MaxUnappliedBytes)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrRestored, err)
	}
	if log.Last() == base.Index && base.Index > 0 {
		// The base on disk may be older than the store's: the first Step tells the disk where the log begins.
		meta := restored.Base
		r.resetMeta = &meta
	}
	log.Dropped = r.opts.Dropped
	r.log = log
	return nil
}

// checkLaws asserts the invariants that every Step must keep.
func (r *Replica) checkLaws() {
	if l := &r.log; !l.Ordered() {
		invariant.Broken("base %d <= applied %d <= handed %d <= commit %d, durable %d <= last %d (member %v, term %d)",
			l.Base().Index, l.Applied(), l.Handed(), l.Commit(), l.Durable(), l.Last(), r.opts.ID, r.hard.term)
	}
}
