package history

import (
	"fmt"

	"github.com/anishathalye/porcupine"
)

// Operation is what a client asked of one key.
type Operation struct {
	Kind  byte // 'p' put, 'g' get, 'c' compare-and-set
	Key   string
	Value string
	Mod   int64 // compare: expected mod revision
}

// Answer is what it was told.
type Answer struct {
	Unknown  bool // failed or timed out: it may have happened, now or later
	Found    bool
	Swapped  bool
	Value    string
	Revision int64 // of the write, or the mod revision that a read showed
}

// state is one key: its value and the revision that wrote it.
type state struct {
	value string
	mod   int64
}

// unknownRevision stands for the revision of a write whose answer was lost.
const unknownRevision = -1

// model says what etcd promises of one key. Revisions are part of it: a write must get a revision above the one it
// replaces, and a read must show the revision that the write was told.
//
// A compare of unknown outcome with a write of unknown revision may have matched or not, so a step can lead to two states.
var model = (&porcupine.NondeterministicModel{
	Partition: partition,
	Init:      func() []any { return []any{state{}} },
	Step: func(s, input, output any) []any {
		return step(s.(state), input.(Operation), output.(Answer))
	},
	DescribeOperation: func(input, output any) string { return fmt.Sprintf("%+v -> %+v", input, output) },
}).ToModel()

func partition(history []porcupine.Operation) [][]porcupine.Operation {
	byKey := map[string][]porcupine.Operation{}
	for _, op := range history {
		key := op.Input.(Operation).Key
		byKey[key] = append(byKey[key], op)
	}
	var parts [][]porcupine.Operation
	for _, part := range byKey {
		parts = append(parts, part)
	}
	return parts
}

// step returns the states that an operation with this answer may leave. There are none if the answer is wrong.
func step(s state, op Operation, a Answer) []any {
	switch op.Kind {
	case 'g':
		return stepGet(s, a)
	case 'p':
		if a.Unknown {
			return []any{state{op.Value, unknownRevision}}
		}
		return only(a.Revision > s.mod, state{op.Value, a.Revision})
	default:
		return stepCompare(s, op, a)
	}
}

func stepGet(s state, a Answer) []any {
	switch {
	case a.Unknown:
		return []any{s}
	case !a.Found:
		return only(s == state{}, s)
	}
	right := s.value == a.Value && (s.mod == a.Revision || s.mod == unknownRevision)
	return only(right, state{a.Value, a.Revision})
}

func stepCompare(s state, op Operation, a Answer) []any {
	mayMatch := s.mod == op.Mod || s.mod == unknownRevision
	mayDiffer := s.mod != op.Mod
	if a.Unknown {
		return append(only(mayMatch, state{op.Value, unknownRevision}), only(mayDiffer, s)...)
	}
	if a.Swapped {
		return only(mayMatch && a.Revision > op.Mod, state{op.Value, a.Revision})
	}
	return only(mayDiffer, s)
}

// only returns the state, if an answer was right.
func only(right bool, s state) []any {
	if !right {
		return nil
	}
	return []any{s}
}
