package apply

import (
	"fmt"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/invariant"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/kv/lease"
	"github.com/quorate/quorate/internal/kv/mvcc"
)

// batch is what one call of Apply has under way. Its buffers are used again by the next.
type batch struct {
	w      *mvcc.Writer
	leases lease.Rows
	events []kv.Event
	wanted bool // somebody watches: collect events
	// eventBytes are keys and values of events, and of the pairs before them.
	eventBytes int
	puts       []kv.PutResult
	row        []byte
	value      []byte
	mark       []byte

	effect effect // of the entry being applied
	answer answer
}

// Apply is ApplyFor where nobody is answered.
func (m *Machine) Apply(entries []consensus.Entry) ([]kv.Result, error) {
	return m.ApplyFor(entries, nil)
}

// ApplyFor applies entries that follow the last one applied, in one engine batch, and returns a result for each. The error
// is an operating error: nothing of the call is visible then, and the machine takes no more entries.
//
// Keys and values that a command asks for are read only if answering gives room for them, and only a little: a result that
// is not complete has Left, and Recall completes it. answering may be nil.
//
// The results of noops and configuration entries bear only the revision. A skipped entry has kv.ErrSkipped, an abort that
// came first of all entries of its proposal has kv.ErrAborted.
func (m *Machine) ApplyFor(entries []consensus.Entry, answering Answering) ([]kv.Result, error) {
	if m.failed != nil {
		return nil, m.failed
	}
	if len(entries) == 0 {
		return nil, nil
	}
	m.reached.Store(uint64(entries[len(entries)-1].Index))
	m.begin(len(entries))
	m.batch.answer = answer{answering: answering}
	results := make([]kv.Result, len(entries))
	mark := m.Applied()
	for i := range entries {
		e := &entries[i]
		invariant.True(e.Index == mark.Index+1 && e.Term >= mark.Term, "entry %v is applied after %v", e.Mark(), mark)
		mark = e.Mark()
		m.batch.effect = effect{}
		m.sessionMu.Lock()
		err := m.applyEntry(e, &results[i])
		m.sessionMu.Unlock()
		if err != nil {
			m.failed = err // the writer is not committed: there is no way on from here
			break
		}
		m.batch.value = m.chain.add(e, m.batch.w.Revision(), &m.batch.effect, m.batch.value)
	}
	if m.failed == nil {
		m.failed = m.commit(mark)
	}
	if m.failed != nil {
		m.batch.w.Abandon()
		release(results)
		return nil, m.failed
	}
	return results, nil
}

func (m *Machine) begin(entries int) {
	b := &m.batch
	b.w = m.store.Begin()
	b.leases.Table, b.leases.Prefix = b.w, []byte{tableLease}
	b.wanted = m.hub.Wanted()
	b.events, b.eventBytes = nil, 0
	b.puts = make([]kv.PutResult, 0, entries) // one allocation for the results of all puts
}

// maxEventBytes bounds the events of one batch that are kept for watchers, the pairs before them included.
const maxEventBytes = 32 << 20

func (b *batch) collectEvents(events []kv.Event) {
	if !b.wanted {
		return
	}
	for i := range events {
		b.eventBytes += len(events[i].KV.Key) + len(events[i].KV.Value)
		if prev := events[i].Prev; prev != nil {
			b.eventBytes += len(prev.Value)
		}
	}
	if b.eventBytes > maxEventBytes {
		b.giveUpEvents()
		return
	}
	b.events = append(b.events, events...)
}

// giveUpEvents leaves the events of this batch to the watchers, which read what they want of them from the store.
func (b *batch) giveUpEvents() { b.wanted, b.events = false, nil }

// commit makes the batch visible and tells the watchers.
func (m *Machine) commit(mark consensus.Mark) error {
	b := &m.batch
	b.mark = appendMark(b.mark[:0], mark)
	b.w.Set(rowApplied, b.mark)
	b.mark = appendChain(b.mark[:0], m.chain.since, m.chain.sum)
	b.w.Set(rowChain, b.mark)
	if err := b.w.Commit(); err != nil {
		return fmt.Errorf("apply: commit entries up to %v: %w", mark, err)
	}
	m.chain.publish(mark.Index)
	m.applied.Store(&mark)
	if rev := m.store.Revision(); b.wanted {
		m.hub.Publish(rev, b.events)
	} else {
		m.hub.Advance(rev)
	}
	b.w, b.leases.Table, b.events, b.puts, b.effect = nil, nil, nil, nil, effect{}
	return nil
}

// applyEntry applies one entry. The error is an operating error.
func (m *Machine) applyEntry(e *consensus.Entry, res *kv.Result) error {
	switch e.Kind {
	case consensus.EntryNoop:
		return m.applyNoop(e, res)
	case consensus.EntryConfig:
		return m.applyConfig(e, res)
	case consensus.EntryCommand:
		return m.applyCommand(e, res)
	case consensus.EntryAbort:
		return m.applyAbort(e, res)
	}
	return fmt.Errorf("%w: entry %v has kind %d", ErrBadEntry, e.Mark(), e.Kind)
}

// applyCommand is the rule of fastpath.md, "Applying": first what the proposal's session says, then the exact revision,
// then the command itself.
func (m *Machine) applyCommand(e *consensus.Entry, res *kv.Result) error {
	w := m.batch.w
	var s *session
	var cmd kv.Command
	var decodeErr error
	if !e.Proposal.IsZero() {
		if s = m.sessions.find(e.Proposal.Session); s != nil && s.has(e.Proposal.Sequence) {
			return m.firstResult(s, e.Proposal, res)
		}
	}
	if e.ExactRevision != 0 && kv.Revision(e.ExactRevision) <= w.Revision() {
		*res = kv.Result{Err: kv.ErrSkipped, Revision: w.Revision()}
		return nil
	}
	cmd, decodeErr = kv.DecodeCommand(e.Payload)
	if s == nil && !e.Proposal.IsZero() {
		if s = m.openFor(e, &cmd); s == nil {
			*res = kv.Result{Err: kv.ErrSessionUnknown, Revision: w.Revision()}
			return nil
		}
	}
	m.batch.answer.clear()
	if decodeErr != nil {
		// Every member must say the same here, so nobody may propose a command before all members know it: the version
		// that each one publishes tells the proposers.
		*res = kv.Result{Err: kv.ErrBadCommand}
	} else if op := cmd.LeaseRevoke; op != nil && op.Term != 0 && op.Term != uint64(e.Term) {
		*res = kv.Result{Err: kv.ErrDeposed}
	} else {
		if e.ExactRevision != 0 {
			w.BeginCommandAt(kv.Revision(e.ExactRevision))
		} else {
			w.BeginCommand()
		}
		m.batch.answer.begin(e.Proposal, &cmd, w.Revision())
		m.executeAside(&cmd, res)
		m.batch.answer.end(res)
		events := w.EndCommand()
		m.batch.effect = effect{events: events, err: res.Err}
		m.batch.collectEvents(events)
	}
	res.Revision = w.Revision()
	if s != nil && !s.gone {
		m.keepResult(s, e.Proposal.Sequence, res)
	}
	return w.Err()
}

// executeAside lets others look at the sessions meanwhile, unless the command is about them: a command may take long, and
// the member's loop, which asks for the fate of proposals, must not wait for it.
func (m *Machine) executeAside(cmd *kv.Command, res *kv.Result) {
	if cmd.SessionOpen == nil && cmd.SessionRetire == nil {
		m.sessionMu.Unlock()
		defer m.sessionMu.Lock()
	}
	m.execute(cmd, res)
}

// applyAbort makes kv.ErrAborted the result of a proposal that has none (fastpath.md, "Forgetting"). An entry of it that
// comes later finds that result and does nothing. A session that is not open needs no result: it refuses the entry anyway,
// and could only be opened by an entry from before the proposal.
func (m *Machine) applyAbort(e *consensus.Entry, res *kv.Result) error {
	w := m.batch.w
	*res = kv.Result{Err: kv.ErrSessionUnknown, Revision: w.Revision()}
	s := m.sessions.find(e.Proposal.Session)
	if s == nil {
		return nil
	}
	if s.has(e.Proposal.Sequence) {
		return m.firstResult(s, e.Proposal, res)
	}
	res.Err = kv.ErrAborted
	m.batch.answer.clear()
	m.keepResult(s, e.Proposal.Sequence, res)
	return w.Err()
}
