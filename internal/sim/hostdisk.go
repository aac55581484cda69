package sim

import (
	"fmt"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/raft"
	"github.com/quorate/quorate/internal/node"
	"github.com/quorate/quorate/internal/sim/diary"
	"github.com/quorate/quorate/internal/sim/dice"
	"github.com/quorate/quorate/internal/storage/wal"
)

// persist queues a write. The checkers learn of the entries now, when the core has them, and again when they are safe.
func (h *host) persist(request node.Persist) {
	s, batch := h.suite, &request.Batch
	if batch.Reset != nil {
		s.Rebased(h.id, *batch.Reset, true)
	}
	s.Entered(h.id, h.node.Replica().Term())
	s.Appended(h.id, batch.Entries)
	s.ForgettingRecords(h.id, batch.Witness)
	for i := range batch.Entries {
		e := &batch.Entries[i]
		if core := h.node.Replica(); e.Kind == consensus.EntryConfig && e.Term == core.Term() {
			s.Proposed(h.id, e.Mark(), core.Status().Commit)
		}
	}
	h.w.actions.persisted(h, &request)
	h.waiting = append(h.waiting, request)
	h.write()
}

// write begins a write of everything that waits, if the disk is idle.
func (h *host) write() {
	if len(h.writing) > 0 || len(h.waiting) == 0 {
		return
	}
	h.writing, h.waiting = h.waiting, nil
	took := dice.Exponential(h.rng, h.w.plan.disk)
	if h.slow > 0 {
		took += dice.Between(h.rng, 0, h.slow)
	}
	if h.writing[len(h.writing)-1].Seq == 0 && len(h.writing) == 1 {
		took = 0 // nothing but messages that waited for earlier writes
	}
	h.after(took, h.written)
}

func (h *host) append(requests []node.Persist) error {
	batches := make([]wal.Batch, 0, len(requests))
	for i := range requests {
		if requests[i].Seq != 0 {
			batches = append(batches, requests[i].Batch)
		}
	}
	if len(batches) == 0 {
		return nil
	}
	if err := h.data.WAL.Append(batches...); err != nil {
		return err
	}
	return h.data.Persisted(batches)
}

// written is the end of a write: what it covers may be said to others.
func (h *host) written() {
	requests := h.writing
	if err := h.append(requests); err != nil {
		h.fail(err)
		return
	}
	h.writing = nil
	var seq uint64
	for i := range requests {
		r := &requests[i]
		if r.Seq == 0 {
			continue
		}
		seq = r.Seq
		h.suite.Synced(h.id, r.Batch.Hard, r.Batch.Entries, r.Batch.Reset)
		h.suite.SyncedRecords(h.id, r.Batch.Witness)
	}
	h.w.trace.Note(h.w.Now(), h.slot, diary.Persist, seq, uint64(len(requests)), 0, nil)
	for i := range requests {
		if len(requests[i].After) > 0 {
			h.w.net.send(h, requests[i].After)
		}
		h.answerFast(requests[i].Evaluate)
	}
	h.suite.Released()
	if seq != 0 {
		h.put(raft.Persisted{Seq: seq})
	}
	if h.compactLog(requests) {
		h.write()
	}
}

// answerFast tells proposers what their entries will give, as the state that is applied a little later says.
func (h *host) answerFast(evaluations []raft.Evaluation) {
	if len(evaluations) == 0 {
		return
	}
	h.after(dice.Exponential(h.rng, h.w.plan.apply), func() {
		var answers []consensus.Message
		for i := range evaluations {
			if answer, known := node.Answer(&evaluations[i], h.data.Machine); known {
				answers = append(answers, answer)
			}
		}
		h.w.net.send(h, answers)
	})
}

// flush makes the store durable and lets the core forget what lies well behind it.
func (h *host) flush() {
	h.after(dice.Exponential(h.rng, h.w.plan.flush), h.flush)
	if err := h.data.Engine.Flush(); err != nil {
		h.fail(err)
		return
	}
	meta := h.data.Machine.SnapshotMeta()
	if durable, err := h.data.Machine.DurableApplied(); err != nil || durable != meta.Mark {
		h.suite.Report("recovery", fmt.Sprintf("applied is %v, after a flush %v is durable (%v)", meta.Mark, durable, err))
	}
	if uint64(meta.Mark.Index) <= h.w.plan.keep {
		return
	}
	h.put(raft.Compact{Index: meta.Mark.Index - consensus.Index(h.w.plan.keep)})
}

// compactLog lets the log forget what the last of some requests says, after their write.
func (h *host) compactLog(requests []node.Persist) bool {
	for i := len(requests) - 1; i >= 0; i-- {
		base := requests[i].Base
		if base == nil {
			continue
		}
		if err := h.data.WAL.Compact(*base); err != nil {
			h.fail(err)
			return false
		}
		h.suite.Rebased(h.id, *base, false)
		return true
	}
	return true
}
