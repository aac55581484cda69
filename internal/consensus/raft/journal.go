package raft

import (
	"fmt"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/configs"
	"github.com/quorate/quorate/internal/consensus/raftlog"
	"github.com/quorate/quorate/internal/invariant"
)

// journal changes the log and the configurations that derive from it together.
type journal struct {
	opts     *Options
	log      *raftlog.Log
	configs  *configs.History
	hard     *hardState
	soft     *softState
	out      *outbox
	observer observer

	resetMeta *consensus.SnapshotMeta // the log on disk has to begin anew after it
}

// observer acts on what is rare: a change of the configurations.
type observer interface {
	configChanged()                      // another configuration is in force
	memberRemoved(id consensus.MemberID) // a committed change removed a member for ever
}

// restoreConfigs derives the configurations from what the log begins after and from the log.
func (j *journal) restoreConfigs(base *consensus.SnapshotMeta) {
	j.configs.Reset(base, j.log.Commit(), j.log.Applied())
	j.pushConfigs(j.log.Slice(j.log.Base().Index+1, j.log.Last()))
	j.reviseConfig()
}

// pushConfigs notes what entries bring, and commits what they prove to be committed.
func (j *journal) pushConfigs(entries []consensus.Entry) {
	for i := range entries {
		if proven := j.configs.Append(&entries[i]); proven > 0 {
			j.commitTo(min(proven, j.log.Last()))
		}
	}
}

// appendConfigs notes what new entries bring.
func (j *journal) appendConfigs(entries []consensus.Entry) {
	before := j.configs.Len()
	j.pushConfigs(entries)
	if j.configs.Len() > before {
		j.reviseConfig()
	}
}

// truncateConfigs undoes what entries from from on had brought.
func (j *journal) truncateConfigs(from consensus.Index) {
	for _, id := range j.configs.Truncate(from) {
		j.out.event(ConfigUndone{ID: id})
	}
	j.reviseConfig()
}

// reviseConfig acts on a configuration that came into force.
func (j *journal) reviseConfig() {
	if j.configs.Revise() {
		j.soft.boundTo = consensus.ConfigID{}
		j.observer.configChanged()
	}
}

// commitTo notes that everything up to index is committed, and which configurations are with it.
func (j *journal) commitTo(index consensus.Index) {
	if index <= j.log.Commit() {
		return
	}
	j.log.CommitTo(index)
	j.advanceConfigs()
}

// advanceConfigs reports what the commit index brought for the configurations, and which members it removed.
func (j *journal) advanceConfigs() {
	for _, m := range j.configs.CommitTo(j.log.Commit()) {
		if m.Committed {
			j.out.event(ConfigCommitted{ID: m.ID})
		}
		if m.Settled {
			j.out.event(ConfigSettled{ID: m.ID})
		}
		for _, id := range m.Removed {
			j.observer.memberRemoved(id)
		}
	}
	j.reviseConfig()
}

// restoreLog takes over the log found on disk.
func (j *journal) restoreLog(restored *Restored) error {
	base := restored.Base.Position
	log, err := raftlog.Restore(base, restored.Entries, restored.Applied, restored.Hard.Commit, j.opts.MaxUnappliedBytes)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrRestored, err)
	}
	if log.Last() == base.Index && base.Index > 0 {
		// The disk may know an older base than the store does: the first Step says where the log begins.
		meta := restored.Base
		j.resetMeta = &meta
	}
	log.Faults = j.opts.Faults.Log
	*j.log = log
	j.hard.savedCommit = j.log.Commit()
	return nil
}

// checkLaws asserts what every Step must leave true.
func (j *journal) checkLaws() {
	if l := j.log; !l.Ordered() {
		invariant.Broken("base %d <= applied %d <= handed %d <= commit %d, durable %d <= last %d (member %v, term %d)",
			l.Base().Index, l.Applied(), l.Handed(), l.Commit(), l.Durable(), l.Last(), j.opts.ID, j.hard.term)
	}
}
