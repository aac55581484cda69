package member

import (
	"slices"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/raft"
	"github.com/quorate/quorate/internal/expiry"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/kv/apply"
	"github.com/quorate/quorate/internal/upkeep"
)

// newApplier ties the applier to what wants to know of what it does.
func newApplier(m *Member) *applier {
	a := &applier{
		data: m.data, stores: &m.stores, received: m.received, leases: m.leases, scrubber: m.scrubber,
		retainer: upkeep.NewRetainer(upkeep.RetainerOptions{
			Retention:  m.options.Retention,
			Compact:    func(to consensus.Index) { m.inbox.put(raft.Compact{Index: to}) },
			Background: m.background,
			Fail:       m.fail,
		}),
		task: m.dog.Watch("applying entries"), clock: m.options.Clock, logger: m.logger, observe: m.options.Applied,
		room: m.answerRoom, applied: m.applied, restored: m.restored,
		put: m.inbox.put, background: m.background,
	}
	a.queue.init()
	return a
}

func newDisk(m *Member) *logWriter {
	w := &logWriter{
		data: m.data, task: m.dog.Watch("writing the log"), clock: m.options.Clock, observe: m.options.Synced,
		deliver: m.Deliver, evaluate: m.evaluations.put, put: m.inbox.put,
	}
	w.queue.init()
	return w
}

func newLeases(m *Member) *expiry.Revoker {
	return expiry.New(expiry.Options{
		Stores: &m.stores, Clock: m.options.Clock, Extend: m.electionTimeout(), Logger: m.logger,
		Leads:   func() bool { return m.leads() },
		Corrupt: m.Corrupt, ReadIndex: m.ReadIndex, Propose: m.Propose,
	})
}

// answerRoom gives room for the answer to a proposal that somebody waits for here.
func (m *Member) answerRoom(id consensus.ProposalID) kv.Room {
	if !m.node.Awaits(id) {
		return nil
	}
	return m.options.Answers.Open(0)
}

// applied completes who waits for a batch, and takes note of what it has changed.
func (m *Member) applied(batch []consensus.Entry, results []kv.Result) {
	m.node.Resolve(batch, results)
	if slices.ContainsFunc(batch, ofConfig) {
		m.noteRemoval()
	}
	m.members.applied(batch)
	m.integrity.Note()
}

// restored does the same for a snapshot that has replaced the store.
func (m *Member) restored(meta consensus.SnapshotMeta, machine *apply.Machine) error {
	if err := m.node.Restored(meta, machine); err != nil {
		return err
	}
	m.noteRemoval()
	m.integrity.Note()
	m.members.changed.tell()
	m.members.jobs.changed.tell()
	return nil
}
