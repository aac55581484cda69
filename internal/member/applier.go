package member

import (
	"time"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/raft"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/node"
)

// applyRequest is entries to apply, or a snapshot to put in place of the store.
type applyRequest struct {
	entries []consensus.Entry
	install *consensus.SnapshotMeta
	lead    *leadership
}

// leadership tells the lessor that this member leads in a term, or leads no more.
type leadership struct {
	leads bool
	term  consensus.Term
}

type (
	applyQueue = queue[applyRequest]
	diskQueue  = queue[node.Persist]
)

// These bound one engine batch, so that readers see progress and memory stays bounded also when a long log is replayed.
const (
	maxApplyEntries = 1024
	maxApplyBytes   = 16 << 20
)

// fitting returns how many of entries go into one batch, at least one.
func fitting(entries []consensus.Entry) int {
	n, size := 1, entries[0].SizeBytes()
	for n < min(len(entries), maxApplyEntries) {
		if size += entries[n].SizeBytes(); size > maxApplyBytes {
			break
		}
		n++
	}
	return n
}

// applyEntries is the goroutine that owns the state machine.
func (m *Member) applyEntries() error {
	var spare []applyRequest
	var run []consensus.Entry
	for {
		select {
		case <-m.applier.signal:
		case <-m.stopping.Done():
			return nil
		}
		requests := m.applier.take(spare)
		spare = requests
		run = run[:0]
		for _, request := range requests {
			if request.install == nil && request.lead == nil {
				run = append(run, request.entries...)
				continue
			}
			if err := m.applyRun(run); err != nil {
				return err
			}
			run = run[:0]
			if request.lead != nil {
				m.lead(*request.lead)
				continue
			}
			if err := m.install(*request.install); err != nil {
				return err
			}
		}
		if err := m.applyRun(run); err != nil {
			return err
		}
		clear(run)
	}
}

// applyRun applies entries in batches, completes who waits for them, and tells the core.
func (m *Member) applyRun(entries []consensus.Entry) error {
	defer m.pulses.idle(&m.pulses.apply)
	for len(entries) > 0 {
		m.pulses.begin(&m.pulses.apply)
		batch := entries[:fitting(entries)]
		entries = entries[len(batch):]
		begun := m.options.Clock.Now()
		results, err := m.data.Machine.ApplyFor(batch, m.answering)
		if err != nil {
			return err
		}
		m.observeTime(m.options.Applied, begun)
		m.node.Resolve(batch, results)
		m.noteConfig(batch)
		m.integrity.Note()
		m.noteJobs(batch)
		// The store's revision, not that of the last result: a second entry of a proposal has the result of the first.
		m.inbox.put(raft.Applied{
			Index: batch[len(batch)-1].Index, Revision: uint64(m.data.Machine.Store().Revision()),
		})
		if err := m.retain(batch); err != nil {
			return err
		}
		if err := m.received.Discard(batch[len(batch)-1].Index); err != nil {
			return err
		}
		m.scrub.consider(m.data.Machine.Store().CompactRevision())
	}
	return nil
}

// answering gives room for the answer to a proposal that somebody waits for here.
func (m *Member) answering(id consensus.ProposalID) kv.Room {
	if !m.node.Awaits(id) {
		return nil
	}
	return m.options.Answers.Open(0)
}

// observeTime tells an observer, if there is one, how long something took.
func (m *Member) observeTime(observer func(time.Duration), begun time.Time) {
	if observer != nil {
		observer(m.options.Clock.Now().Sub(begun))
	}
}
