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

// model says what etcd promises of one key. Revisions are part of it: a write must get a revision above the one it
// replaces, and a read must show the revision that the write was told.
var model = porcupine.Model{
	Partition: partition,
	Init:      func() any { return state{} },
	Step: func(s, input, output any) (bool, any) {
		return step(s.(state), input.(Operation), output.(Answer))
	},
	DescribeOperation: func(input, output any) string { return fmt.Sprintf("%+v -> %+v", input, output) },
}

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

// unknownRevision stands for the revision of a write whose answer was lost.
const unknownRevision = -1

func step(s state, op Operation, a Answer) (bool, state) {
	switch op.Kind {
	case 'g':
		if a.Unknown {
			return true, s
		}
		if !a.Found {
			return s == state{}, s
		}
		if s.value != a.Value || s.mod != a.Revision && s.mod != unknownRevision {
			return false, s
		}
		return true, state{s.value, a.Revision}
	case 'p':
		if a.Unknown {
			return true, state{op.Value, unknownRevision}
		}
		return a.Revision > s.mod, state{op.Value, a.Revision}
	default:
		return stepCompare(s, op, a)
	}
}

func stepCompare(s state, op Operation, a Answer) (bool, state) {
	matches := s.mod == op.Mod
	switch {
	case a.Unknown && matches:
		return true, state{op.Value, unknownRevision}
	case a.Unknown:
		return true, s
	case a.Swapped:
		// A write of unknown revision may be the one that the client compared with.
		return matches || s.mod == unknownRevision, state{op.Value, a.Revision}
	}
	return !matches, s
}
