package sim

import (
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/sim/diary"
)

// Operation implements workload.World.
func (w *World) Operation(client int, what string) {
	w.trace.Note(w.Now(), -1, diary.Operation, uint64(client), 0, 0, func() string { return what })
}

// Listen implements workload.World.
func (w *World) Listen(client consensus.MemberID, hear func(m consensus.Message)) {
	w.net.clients[client] = hear
}

// Answer implements workload.World.
func (w *World) Answer(client int, ok bool, revision kv.Revision) {
	answered := uint64(0)
	if ok {
		answered = 1
	}
	w.trace.Note(w.Now(), -1, diary.Answer, uint64(client), answered, uint64(revision), nil)
}
