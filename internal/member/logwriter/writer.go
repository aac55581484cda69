package logwriter

import (
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/raft"
	"github.com/quorate/quorate/internal/member/node"
)

// Options say where a Writer writes, and who takes what leaves. All but Synced, Took and Compacted must be set.
type Options struct {
	// Append writes batches to the log and returns once they are on disk.
	Append func(batches ...consensus.Batch) error
	// Persisted is told of batches that are on disk, before anything else.
	Persisted func(batches []consensus.Batch) error
	// Compact has the log forget what lies at or before a base.
	Compact func(base consensus.SnapshotMeta) error
	// Synced, if set, is told of the requests that are on disk now, before anything of them leaves.
	Synced func(requests []node.Persist)
	// Took, if set, says how long a request took that is on disk now, in microseconds. The core is told, and the messages that
	// leave say so.
	Took     func(request *node.Persist) uint32
	Deliver  func(messages []consensus.Message)
	Evaluate func(evaluations []raft.Evaluation)
	Put      func(inputs ...raft.Input) // to the core
	// Compacted, if set, is told that the log has forgotten what lies at or before a base.
	Compacted func(base consensus.SnapshotMeta)
	// Faults break the order on purpose, as negative controls of the checkers. Tests only.
	Faults Faults
}

// Faults are switches that break a rule each.
type Faults struct {
	TellCoreLast bool // messages leave before the core knows what is on disk
}

// Writer writes the log of one member.
type Writer struct {
	options Options
	batches []consensus.Batch // of the present write; kept for the next
	after   release
}

// release is what a write lets happen, one step at a time.
type release struct {
	requests []node.Persist
	seq      uint64 // what the core is to be told; zero: nothing
	took     uint32 // how long its request took
	at       int    // the request whose messages and evaluations leave next
	sent     bool   // its messages have
}

// New returns a writer.
func New(options Options) *Writer { return &Writer{options: options} }

// Write makes requests durable, in their order, and does what they ask for after that.
func (w *Writer) Write(requests []node.Persist) error {
	if err := w.Begin(requests); err != nil {
		return err
	}
	for {
		if more, err := w.Step(); !more || err != nil {
			return err
		}
	}
}

// Begin makes requests durable. Step then does what they ask for, one thing at a time: between two of them anything may happen
// elsewhere, as while the goroutine of a member waits for a processor.
func (w *Writer) Begin(requests []node.Persist) error {
	seq, err := w.Sync(requests)
	if err != nil {
		return err
	}
	if w.options.Synced != nil {
		w.options.Synced(requests)
	}
	w.after = release{requests: requests, seq: seq, took: w.timed(requests)}
	return nil
}

// timed has what leaves with requests say how long they took, and returns the time of the last one that was written.
func (w *Writer) timed(requests []node.Persist) (last uint32) {
	if w.options.Took == nil {
		return 0
	}
	for i := range requests {
		request := &requests[i]
		took := w.options.Took(request)
		if request.Seq != 0 {
			last = took
		}
		for j := range request.After {
			if m := &request.After[j]; m.Kind.WaitsForDisk() {
				m.DiskTook = took
			}
		}
		for j := range request.Evaluate {
			request.Evaluate[j].Message.DiskTook = took
		}
	}
	return last
}

// Step does the next thing that the requests of Begin ask for, and reports whether there may be more.
func (w *Writer) Step() (more bool, err error) {
	// The core must know what is on disk before any other goroutine does: it says so when it is asked, for reads.
	if !w.options.Faults.TellCoreLast && w.tell() {
		return true, nil
	}
	o, r := &w.options, &w.after
	for ; r.at < len(r.requests); r.at, r.sent = r.at+1, false {
		request := &r.requests[r.at]
		switch {
		case len(request.After) > 0 && !r.sent:
			r.sent = true
			o.Deliver(request.After)
			return true, nil
		case len(request.Evaluate) > 0:
			o.Evaluate(request.Evaluate)
			r.at, r.sent = r.at+1, false
			return true, nil
		}
	}
	if w.tell() {
		return true, nil
	}
	requests := r.requests
	w.after = release{}
	return false, w.compact(requests)
}

// tell tells the core what is on disk, once.
func (w *Writer) tell() bool {
	seq := w.after.seq
	w.after.seq = 0
	if seq != 0 {
		w.options.Put(raft.Persisted{Seq: seq, Took: w.after.took})
	}
	return seq != 0
}

// Sync makes requests durable and lets nothing leave. It returns the number of the last one that is on disk, or zero if
// there was nothing to write.
func (w *Writer) Sync(requests []node.Persist) (seq uint64, err error) {
	w.batches = w.batches[:0]
	// Entries of a batch lie in the core's log: one that stays here keeps all that the log held then.
	defer func() { clear(w.batches) }()
	for i := range requests {
		if requests[i].Seq != 0 {
			seq = requests[i].Seq
			w.batches = append(w.batches, requests[i].Batch)
		}
	}
	if len(w.batches) == 0 {
		return 0, nil
	}
	if err := w.options.Append(w.batches...); err != nil {
		return 0, err
	}
	return seq, w.options.Persisted(w.batches)
}

// compact lets the log forget what the last of some requests says.
func (w *Writer) compact(requests []node.Persist) error {
	for i := len(requests) - 1; i >= 0; i-- {
		base := requests[i].Base
		if base == nil {
			continue
		}
		if err := w.options.Compact(*base); err != nil {
			return err
		}
		if w.options.Compacted != nil {
			w.options.Compacted(*base)
		}
		return nil
	}
	return nil
}
