package shell

import (
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/tally"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/kv/apply"
	"github.com/quorate/quorate/internal/member/lanes"
	"github.com/quorate/quorate/internal/member/node"
	"github.com/quorate/quorate/internal/sim/check"
	"github.com/quorate/quorate/internal/sim/diary"
)

// checks report the actions of a process to the checkers.
type checks struct{ *Process }

var _ lanes.Checks = checks{}

// Persisting reports the entries now, when the core has them; Synced reports them again when they are durable.
func (l checks) Persisting(request node.Persist) {
	status := l.Lanes.Node().Replica().Status()
	core := check.Core{Term: status.Term, Commit: status.Commit, Applied: status.Applied}
	l.Suite.Persisting(l.ID, core, &request.Batch)
	l.Actions.Persisted(core.Term, &request.Batch)
}

// Synced reports what is on disk now: the process may promise it to others.
func (l checks) Synced(requests []node.Persist) {
	last := l.Suite.Written(l.ID, requests)
	l.Note(diary.Persist, last, uint64(len(requests)), 0, nil)
}

// Compacted reports the new beginning of the log.
func (l checks) Compacted(base consensus.SnapshotMeta) { l.Suite.Rebased(l.ID, base, false) }

// Committed reports the core's commit index, before the entries are applied.
func (l checks) Committed([]consensus.Entry) { l.committed() }

// Decided reports the proposals that the fast path decided.
func (l checks) Decided(wins []tally.Decision) {
	l.Actions.Decided(wins)
	l.Suite.FastDecided(l.ID, wins)
}

// Applied reports a batch.
func (a checks) Applied(batch []consensus.Entry, results []kv.Result) {
	first, last := batch[0].Index, batch[len(batch)-1].Index
	a.Note(diary.Apply, uint64(last), uint64(results[len(results)-1].Revision), uint64(len(batch)), nil)
	a.Suite.Applied(a.ID, batch, results)
	a.chained(first, last)
	a.Suite.Published(a.ID, last, a.Data.Machine.Store().Revision())
	a.Counts.Applied += uint64(len(batch))
}

// Restored reports a snapshot that has replaced the store.
func (a checks) Restored(meta consensus.SnapshotMeta, machine *apply.Machine) {
	a.Counts.Snapshots++
	a.Note(diary.Snapshot, uint64(meta.Position.Index), uint64(meta.Position.Term), 0, nil)
	a.chained(meta.Position.Index, meta.Position.Index)
	a.Suite.Published(a.ID, meta.Position.Index, machine.Store().Revision())
}

// NotInstalled reports a snapshot that could not replace the store.
func (a checks) NotInstalled(err error) {
	if !a.blames() && !a.outgrown(err) {
		a.Suite.Report("operating-error", err.Error())
	}
}

// chained reports the chain at each index of a batch.
func (a checks) chained(first, last consensus.Index) {
	for index := first; index <= last; index++ {
		if position, known := a.Data.Machine.ChainAt(index); known {
			a.Suite.Chained(a.ID, position.Index, position.Sum)
		}
	}
}
