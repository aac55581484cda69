package lab

import (
	"slices"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/raft"
)

// disk takes its time and syncs all that waits at once.
type disk struct {
	m        *member
	hard     consensus.HardState
	base     consensus.SnapshotMeta
	entries  []entry
	records  []consensus.Record // of the fast path
	switched consensus.Index    // see switched.go

	queue   []raft.Output // persist requests and what waits for them
	syncing bool
	hangs   bool // nothing gets durable any more
}

func (d *disk) write(out *raft.Output) {
	if out.Seq != 0 || len(out.SendAfter) > 0 || len(out.Evaluate) > 0 {
		d.queue = append(d.queue, *out)
		d.sync()
	}
}

func (d *disk) sync() {
	if d.syncing || d.hangs || len(d.queue) == 0 {
		return
	}
	d.syncing = true
	count := len(d.queue)
	d.m.soon(d.m.w.jitter(d.m.w.pace.sync), func() {
		d.syncing = false
		done := d.queue[:count:count]
		d.queue = d.queue[count:]
		d.complete(done)
		d.sync()
	})
}

// complete makes requests durable and lets go what waited for them.
func (d *disk) complete(done []raft.Output) {
	var inputs []raft.Input
	for i := range done {
		d.take(&done[i])
		if done[i].Seq != 0 {
			inputs = append(inputs, raft.Persisted{Seq: done[i].Seq})
		}
	}
	if !d.m.w.stages.durable(d.m) {
		return
	}
	for i := range done {
		for _, msg := range done[i].SendAfter {
			d.m.w.net.send(msg)
		}
		d.m.answer(done[i].Evaluate)
	}
	d.m.step(inputs...)
	d.m.w.broken.countSelf(d.m)
}

func (d *disk) take(out *raft.Output) {
	if out.Hard != nil {
		d.hard = *out.Hard
	}
	if out.Reset != nil {
		d.base, d.entries = *out.Reset, nil
	}
	if len(out.Entries) > 0 {
		keep := out.Entries[0].Index - d.base.Position.Index - 1
		d.entries = append(d.entries[:keep:keep], out.Entries...)
	}
	for _, c := range out.Records {
		d.records = slices.DeleteFunc(slices.Clone(d.records), func(r consensus.Record) bool {
			return r.Attempt == c.Record.Attempt
		})
		if !c.Forget {
			d.records = append(d.records, c.Record)
		}
	}
}

// flush makes durable what waits, without a word to anybody: the member is about to crash.
func (d *disk) flush(out *raft.Output) {
	for i := range d.queue {
		d.take(&d.queue[i])
	}
	d.take(out)
	d.queue = nil
}

// hang makes nothing durable any more, or goes on with what waits.
func (d *disk) hang(hangs bool) {
	d.hangs = hangs
	d.sync()
}

func (d *disk) forget() { d.queue, d.syncing = nil, false }

func (d *disk) holds(at position) bool {
	return slices.ContainsFunc(d.entries, func(e entry) bool { return e.Position() == at })
}
