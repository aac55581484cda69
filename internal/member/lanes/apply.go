package lanes

import (
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/raft"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/kv/apply"
	"github.com/quorate/quorate/internal/member/applier"
	"github.com/quorate/quorate/internal/member/upkeep"
)

// applying is the lane that applies committed entries.
type applying struct {
	queue   Queue[applier.Work]
	applier *applier.Applier
	spare   []applier.Work
}

func (l *Lanes) newApplier(parts Parts) *applier.Applier {
	o := &l.options
	return applier.New(applier.Options{
		Data: o.Data, Stores: o.Stores, Received: parts.Received, Leases: parts.Leases, Compactor: parts.Compactor,
		Logger: o.Logger,
		Retainer: upkeep.NewRetainer(upkeep.RetainerOptions{
			Retention:  o.Retention,
			Compact:    func(to consensus.Index) { l.inbox.Put(raft.Compact{Index: to}) },
			Background: l.host.Background,
			Fail:       l.host.Fail,
		}),
		Apply: l.host.ApplyBatch, Applied: l.applied, Restored: l.restored, NotInstalled: l.checks.NotInstalled,
		Put: l.inbox.Put, Background: l.host.Background, MaxEntries: o.MaxEntries, Busy: o.Busy,
	})
}

// Apply applies all queued work. Its error ends the member.
func (l *Lanes) Apply() error {
	a := &l.apply
	a.spare = a.queue.Take(a.spare)
	return a.applier.Do(a.spare)
}

// Applies reports whether work is queued.
func (l *Lanes) Applies() bool { return l.apply.queue.Len() > 0 }

// applied completes the proposals and reads that wait for a batch.
func (l *Lanes) applied(batch []consensus.Entry, results []kv.Result) {
	l.checks.Applied(batch, results)
	l.loop.node.Resolve(batch, results)
	l.host.Applied(batch, results)
}

// restored completes the proposals and reads to which a snapshot that has replaced the store gives the answer.
func (l *Lanes) restored(meta consensus.SnapshotMeta, machine *apply.Machine) error {
	l.checks.Restored(meta, machine)
	if err := l.loop.node.Restored(meta, machine); err != nil {
		return err
	}
	l.host.Restored(meta, machine)
	return nil
}
