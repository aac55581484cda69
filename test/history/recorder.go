package history

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/anishathalye/porcupine"
)

// Recorder collects what all clients asked and were told of registers. It is safe for concurrent use.
type Recorder struct {
	mu      sync.Mutex
	begun   time.Time
	doubt   doubt
	history []porcupine.Operation
	acked   map[string]map[int64]string // key -> revision -> value
	failed  []error                     // what operations failed with
}

// NewRecorder returns an empty history that begins now.
func NewRecorder() *Recorder {
	return &Recorder{begun: time.Now(), acked: map[string]map[int64]string{}}
}

// Since returns the time since the begin, in nanoseconds.
func (r *Recorder) Since() int64 { return int64(time.Since(r.begun)) }

// Len returns how many operations there are.
func (r *Recorder) Len() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.history)
}

// Fail notes what an operation failed with.
func (r *Recorder) Fail(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.failed = append(r.failed, err)
}

// Failures returns what operations failed with.
func (r *Recorder) Failures() []error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.failed
}

// Acked returns the acknowledged writes: key -> revision -> value. It must not be called while operations run.
func (r *Recorder) Acked() map[string]map[int64]string { return r.acked }

// AckedWrites returns how many writes were acknowledged so far.
func (r *Recorder) AckedWrites() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := 0
	for _, revisions := range r.acked {
		n += len(revisions)
	}
	return n
}

// LosePower makes every answer count as none until power is back, and that of every operation that began before then.
func (r *Recorder) LosePower() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.doubt.lost = true
}

// PowerBack ends what LosePower began.
func (r *Recorder) PowerBack() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.doubt = doubt{resumed: r.Since()}
}

// Add notes an operation that a client began at call. A write of unknown outcome may take effect at any time from then on.
func (r *Recorder) Add(client int, call int64, op Operation, a Answer) {
	r.mu.Lock()
	defer r.mu.Unlock()
	done := r.Since()
	if a.Unknown || r.doubt.holds(call) {
		a = Answer{Unknown: true}
		if op.Kind == 'g' {
			return
		}
		done = int64(time.Hour)
	}
	r.history = append(r.history, porcupine.Operation{ClientId: client, Input: op, Call: call, Output: a, Return: done})
	if !a.Unknown && (op.Kind == 'p' || op.Kind == 'c' && a.Swapped) {
		if r.acked[op.Key] == nil {
			r.acked[op.Key] = map[int64]string{}
		}
		r.acked[op.Key][a.Revision] = op.Value
	}
}

// Check looks, for at most limit a key, for an order of all operations that explains what clients were told. It returns an
// empty text if there is one, and otherwise the operations of the key that has none.
func (r *Recorder) Check(limit time.Duration) string {
	for _, ops := range partition(r.history) {
		switch porcupine.CheckOperationsTimeout(model, ops, limit) {
		case porcupine.Illegal:
			return "the history is not linearizable:\n" + describe(ops)
		case porcupine.Unknown:
			return "the history was too long to be checked in " + limit.String()
		}
	}
	return ""
}

// describe lists operations by the time of their call.
func describe(ops []porcupine.Operation) string {
	var text strings.Builder
	for _, op := range slices.SortedFunc(slices.Values(ops), func(a, b porcupine.Operation) int {
		return cmp.Compare(a.Call, b.Call)
	}) {
		fmt.Fprintf(&text, "client %d, %v to %v: %s\n", op.ClientId, time.Duration(op.Call), time.Duration(op.Return),
			model.DescribeOperation(op.Input, op.Output))
	}
	return text.String()
}
