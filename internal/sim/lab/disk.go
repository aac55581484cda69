package lab

import (
	"slices"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/raft"
	"github.com/quorate/quorate/internal/member/logwriter"
	"github.com/quorate/quorate/internal/member/node"
)

// disk takes its time. The log writer of members decides which batches one write covers, and
// which messages may leave after it.
type disk struct {
	m        *member
	writer   *logwriter.Writer
	hard     consensus.HardState
	base     consensus.SnapshotMeta
	entries  []entry
	witness  []consensus.WitnessRecord // of the fast path
	switched consensus.Index           // see switched.go

	queue   []node.Persist
	told    []raft.Input // what the writer tells the replica, which takes it once all has left
	syncing bool
	hangs   bool // nothing gets durable any more
}

// open gives the disk to a new life of its member.
func (d *disk) open() {
	d.writer = logwriter.New(logwriter.Options{
		Append: d.append, Persisted: func([]consensus.Batch) error { return nil },
		Put:      func(inputs ...raft.Input) { d.told = append(d.told, inputs...) },
		Deliver:  d.m.w.net.sendAll,
		Evaluate: d.m.answer,
		Synced: func(requests []node.Persist) {
			d.m.w.judge.Written(d.m.id, requests)
			d.m.w.stages.durable(d.m)
		},
	})
}

func (d *disk) write(out *raft.Output) {
	if request, asks := node.PersistOf(out); asks {
		d.m.w.judge.persisting(&d.m.status, &request)
		d.queue = append(d.queue, request)
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

// complete makes requests durable and lets go what waited for them, unless the member dies as they are durable.
func (d *disk) complete(requests []node.Persist) {
	err := d.writer.Begin(requests)
	for more := true; more && err == nil && d.m.running(); {
		more, err = d.writer.Step()
	}
	if !d.m.running() {
		return
	}
	told := d.told
	d.told = nil
	d.m.step(told...)
	d.m.w.broken.countSelf(d.m)
}

// append makes batches durable. It does not fail.
func (d *disk) append(batches ...consensus.Batch) error {
	for i := range batches {
		d.take(&batches[i])
	}
	return nil
}

func (d *disk) take(b *consensus.Batch) {
	if b.Hard != nil {
		d.hard = *b.Hard
	}
	if b.Reset != nil {
		d.base, d.entries = *b.Reset, nil
	}
	if len(b.Entries) > 0 {
		keep := int(b.Entries[0].Index - d.base.Position.Index - 1)
		d.entries = appended(d.entries, keep, b.Entries)
	}
	for _, change := range b.Witness {
		d.witness = slices.DeleteFunc(slices.Clone(d.witness), func(r consensus.WitnessRecord) bool {
			return r.Attempt == change.Attempt
		})
		if !change.Forget {
			d.witness = append(d.witness, change)
		}
	}
}

// appended returns the first entries of a log, so many, with more after them. Entries that are dropped stay in the former
// array, which others may read.
func appended(log []entry, keep int, more []entry) []entry {
	if keep < len(log) {
		log = log[:keep:keep]
	}
	return append(log, more...)
}

// flush makes durable what waits, without a word to anybody: the member is about to crash.
func (d *disk) flush(out *raft.Output) {
	if request, asks := node.PersistOf(out); asks {
		d.m.w.judge.persisting(&d.m.status, &request)
		d.queue = append(d.queue, request)
	}
	_, _ = d.writer.Sync(d.queue) // append does not fail
	d.queue = nil
}

// hang makes nothing durable any more, or goes on with what waits.
func (d *disk) hang(hangs bool) {
	d.hangs = hangs
	d.sync()
}

func (d *disk) forget() { d.queue, d.told, d.syncing = nil, nil, false }

func (d *disk) holds(at position) bool {
	return slices.ContainsFunc(d.entries, func(e entry) bool { return e.Position() == at })
}
