package process_test

import (
	"fmt"
	"sync"
	"time"

	"github.com/anishathalye/porcupine"
)

// operation is what a client asked of one key, answer what it was told.
type operation struct {
	kind  byte // 'p' put, 'g' get, 'c' compare-and-set
	key   string
	value string
	mod   int64 // compare: expected mod revision
}

type answer struct {
	unknown  bool // failed or timed out: it may have happened, now or later
	found    bool
	swapped  bool
	value    string
	revision int64 // of the write, or the mod revision that a read showed
}

// state is one key: its value and the revision that wrote it.
type state struct {
	value string
	mod   int64
}

// model says what etcd promises of one key. Revisions are part of it: a write must get a revision above the one it
// replaces, and a read must show the revision that the write was told.
var model = porcupine.Model{
	Partition: partition,
	Init:      func() any { return state{} },
	Step: func(s, input, output any) (bool, any) {
		return step(s.(state), input.(operation), output.(answer))
	},
	DescribeOperation: func(input, output any) string { return fmt.Sprintf("%+v -> %+v", input, output) },
}

func partition(history []porcupine.Operation) [][]porcupine.Operation {
	byKey := map[string][]porcupine.Operation{}
	for _, op := range history {
		key := op.Input.(operation).key
		byKey[key] = append(byKey[key], op)
	}
	var parts [][]porcupine.Operation
	for _, part := range byKey {
		parts = append(parts, part)
	}
	return parts
}

// unknownRevision stands for the revision of a write whose answer was lost.
const unknownRevision = -1

func step(s state, op operation, a answer) (bool, state) {
	switch op.kind {
	case 'g':
		if a.unknown {
			return true, s
		}
		if !a.found {
			return s == state{}, s
		}
		if s.value != a.value || s.mod != a.revision && s.mod != unknownRevision {
			return false, s
		}
		return true, state{s.value, a.revision}
	case 'p':
		if a.unknown {
			return true, state{op.value, unknownRevision}
		}
		return a.revision > s.mod, state{op.value, a.revision}
	default:
		return stepCompare(s, op, a)
	}
}

func stepCompare(s state, op operation, a answer) (bool, state) {
	matches := s.mod == op.mod
	switch {
	case a.unknown && matches:
		return true, state{op.value, unknownRevision}
	case a.unknown:
		return true, s
	case a.swapped:
		// A write of unknown revision may be the one that the client compared with.
		return matches || s.mod == unknownRevision, state{op.value, a.revision}
	}
	return !matches, s
}

// recorder collects the history of all clients.
type recorder struct {
	mu      sync.Mutex
	begun   time.Time
	history []porcupine.Operation
	acked   map[string]map[int64]string // key -> revision -> value
	failed  []error                     // what operations failed with
}

func newRecorder() *recorder {
	return &recorder{begun: time.Now(), acked: map[string]map[int64]string{}}
}

func (r *recorder) since() int64 { return int64(time.Since(r.begun)) }

func (r *recorder) fail(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.failed = append(r.failed, err)
}

func (r *recorder) add(client int, call int64, op operation, a answer) {
	r.mu.Lock()
	defer r.mu.Unlock()
	done := r.since()
	if a.unknown {
		if op.kind == 'g' {
			return
		}
		done = int64(time.Hour) // it may take effect at any time from now on
	}
	r.history = append(r.history, porcupine.Operation{ClientId: client, Input: op, Call: call, Output: a, Return: done})
	if !a.unknown && (op.kind == 'p' || op.kind == 'c' && a.swapped) {
		if r.acked[op.key] == nil {
			r.acked[op.key] = map[int64]string{}
		}
		r.acked[op.key][a.revision] = op.value
	}
}
