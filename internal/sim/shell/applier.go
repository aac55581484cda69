package shell

import (
	"errors"

	"github.com/quorate/quorate/internal/applier"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/datadir"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/kv/apply"
	"github.com/quorate/quorate/internal/node"
	"github.com/quorate/quorate/internal/sim/diary"
	"github.com/quorate/quorate/internal/sim/dice"
)

// applying drives the applier: what waits is done a drawn time later.
type applying struct {
	*Life
	applier *applier.Applier
	queue   []applier.Work
	busy    bool
}

// do leaves work.
func (a *applying) do(work applier.Work) {
	a.queue = append(a.queue, work)
	a.begin()
}

func (a *applying) begin() {
	if a.busy || len(a.queue) == 0 {
		return
	}
	a.busy = true
	a.After(dice.Exponential(a.Rng, a.Pace.Apply), a.run)
}

// run does what waited when it began.
func (a *applying) run() {
	a.busy = false
	todo := a.queue
	a.queue = nil
	if err := a.applier.Do(todo); err != nil {
		a.Fail(err)
		return
	}
	a.begin()
}

// applied is what the applier tells: to the node, as in a member, and to the checkers.
type applied struct {
	*Life
	data    *datadir.Data
	node    *node.Node
	altered func([]consensus.Entry) []consensus.Entry // a negative control: what is applied instead of a batch
}

// apply applies as a member does that answers everybody, and reads again what a repeated entry left out. What is gone with
// its history stays out.
func (a *applied) apply(batch []consensus.Entry) ([]kv.Result, error) {
	if a.altered != nil {
		batch = a.altered(batch)
	}
	results, err := a.data.Machine.ApplyFor(batch, func(consensus.ProposalID) kv.Account { return unlimited{} })
	for i := range results {
		if command, err := kv.DecodeCommand(batch[i].Payload); err == nil {
			a.recall(&command, &results[i])
		}
	}
	return results, err
}

func (a *applied) recall(command *kv.Command, result *kv.Result) {
	if err := a.data.Machine.Recall(command, result, unlimited{}); err != nil && !errors.Is(err, kv.ErrResultGone) {
		a.Fail(err)
	}
}

// unlimited is memory without bound.
type unlimited struct{}

func (unlimited) Take(int) error { return nil }
func (unlimited) Walk(int) error { return nil }
func (unlimited) Release()       {}

// batch takes note of a batch.
func (a *applied) batch(batch []consensus.Entry, results []kv.Result) {
	first, last := batch[0].Index, batch[len(batch)-1].Index
	a.Note(diary.Apply, uint64(last), uint64(results[len(results)-1].Revision), uint64(len(batch)), nil)
	a.Suite.Applied(a.ID, batch, results)
	a.chained(first, last)
	a.Suite.Published(a.ID, last, a.data.Machine.Store().Revision())
	a.Counts.Applied += uint64(len(batch))
	a.node.Resolve(batch, results)
}

// restored takes note of a snapshot that has replaced the store.
func (a *applied) restored(meta consensus.SnapshotMeta, machine *apply.Machine) error {
	a.Counts.Snapshots++
	a.Note(diary.Snapshot, uint64(meta.Position.Index), uint64(meta.Position.Term), 0, nil)
	a.chained(meta.Position.Index, meta.Position.Index)
	a.Suite.Published(a.ID, meta.Position.Index, machine.Store().Revision())
	return a.node.Restored(meta, machine)
}

// notInstalled takes note of a snapshot that could not take the place of the store. A removed member of an earlier build, which
// is still fed, need not know the level of the others.
func (a *applied) notInstalled(err error) {
	_, member := a.Suite.CommittedConfig().Member(a.ID)
	if !a.blames() && (member || !errors.Is(err, apply.ErrNewer)) {
		a.Suite.Report("operating-error", err.Error())
	}
}

// chained tells the checkers the chain at each index of a batch.
func (a *applied) chained(first, last consensus.Index) {
	for index := first; index <= last; index++ {
		if position, known := a.data.Machine.ChainAt(index); known {
			a.Suite.Chained(a.ID, position.Index, position.Sum)
		}
	}
}
