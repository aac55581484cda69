package check

import (
	"fmt"
	"slices"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/quorate/quorate/internal/kv"
)

// history checks linearizability of each key by itself with Porcupine, which knows nothing of logs or of the order of revisions
// across keys: an independent check. Writes without an answer are looked up in the committed log by their unique value: those
// that are not there had no effect.
type history struct {
	ops     []Operation
	Unknown int // keys that were not judged
}

// OperationKind is the kind of a client's operation on one key.
type OperationKind uint8

const (
	OpGet OperationKind = iota
	OpPut
	OpCAS
	OpDelete
)

// Operation is one operation of one client on one key. An operation without an answer has no End.
type Operation struct {
	Client     int
	Kind       OperationKind
	Key        string
	Value      string      // written, or read
	Expect     kv.Revision // of a CAS: the expected mod revision
	Begin, End time.Duration
	Answered   bool
	Done       bool        // a CAS that succeeded, a get or delete that found the key
	Revision   kv.Revision // of a write: its own; of a get: the key's mod revision
}

// maxOpsPerKey keeps the search short; the workload moves to new keys long before.
const maxOpsPerKey = 400

// Record adds an operation to the history.
func (s *Suite) Record(op Operation) { s.history.ops = append(s.history.ops, op) }

type register struct {
	value    string
	revision kv.Revision // zero: the key does not exist
}

func stepRegister(state, input, _ any) (bool, any) {
	now, op := state.(register), input.(Operation)
	switch op.Kind {
	case OpGet:
		if !op.Done {
			return now.revision == 0, now
		}
		return now.value == op.Value && now.revision == op.Revision, now
	case OpPut:
		return op.Revision > now.revision, register{op.Value, op.Revision}
	case OpCAS:
		if !op.Done {
			return now.revision != op.Expect, now
		}
		return now.revision == op.Expect && op.Revision > now.revision, register{op.Value, op.Revision}
	}
	// A delete that found nothing changes nothing. One without an answer may find something or not.
	if op.Answered {
		return op.Done == (now.revision != 0), register{}
	}
	return true, register{}
}

var model = porcupine.Model{
	Init: func() any { return register{} },
	Step: stepRegister,
	DescribeOperation: func(input, _ any) string {
		return fmt.Sprintf("%+v", input)
	},
}

func (h *history) finish(s *Suite) {
	written := s.writtenValues()
	keys := map[string][]porcupine.Operation{}
	var order []string
	for _, op := range h.ops {
		if !op.Answered {
			if op.Kind == OpGet {
				continue
			}
			if op.Kind != OpDelete {
				revision, ok := written[op.Value]
				if !ok {
					continue
				}
				op.Revision, op.Done = revision, true
			}
			op.End = 1 << 62
		}
		if _, ok := keys[op.Key]; !ok {
			order = append(order, op.Key)
		}
		keys[op.Key] = append(keys[op.Key], porcupine.Operation{
			ClientId: op.Client, Input: op, Call: int64(op.Begin), Return: int64(op.End)})
	}
	slices.Sort(order)
	for _, key := range order {
		ops := keys[key]
		if len(ops) > maxOpsPerKey {
			h.Unknown++ // a part of a history proves nothing
			continue
		}
		switch porcupine.CheckOperationsTimeout(model, ops, 10*time.Second) {
		case porcupine.Illegal:
			s.report("linearizable", "the history of %q (%d operations) has no linear order", key, len(ops))
			return
		case porcupine.Unknown:
			h.Unknown++
		}
	}
}

// writtenValues maps the unique values of the workload to the revisions at which the committed log wrote them.
func (s *Suite) writtenValues() map[string]kv.Revision {
	values := map[string]kv.Revision{}
	for _, events := range s.machine.model.Events {
		for i := range events {
			if events[i].Kind == kv.EventPut {
				values[string(events[i].KV.Value)] = events[i].KV.ModRevision
			}
		}
	}
	return values
}
