package apply

import (
	"errors"
	"fmt"

	"github.com/quorate/quorate/internal/base/invariant"
	"github.com/quorate/quorate/internal/base/level"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/kv/counts"
)

// Apply is ApplyFor without answers.
func (m *Machine) Apply(entries []consensus.Entry) ([]kv.Result, error) {
	return m.ApplyFor(entries, nil)
}

// maxBatchBytes is the length of an engine batch from which on it is committed before the next entry: several deletions that
// each need much memory shall not need it at once. It does not affect the applied state: members divide the log into calls
// differently anyway.
const maxBatchBytes = 4 << 20

// ApplyFor applies entries that follow the last one applied, in one engine batch, or in several if they write much, and returns
// a result for each. The error is an operating error: no change of the last batch is visible then, and the machine takes no
// more entries.
//
// ApplyFor reads the keys and values that a command asks for only if answering returns an account for them, and only a few: a
// result that is not complete has Left, and Recall completes it. answering may be nil.
//
// The results of noops and configuration entries have only the revision. A skipped entry has kv.ErrSkipped, an abort that came
// before all other entries of its proposal has kv.ErrAborted.
func (m *Machine) ApplyFor(entries []consensus.Entry, answering Answering) ([]kv.Result, error) {
	if m.failed != nil {
		return nil, m.failed
	}
	if len(entries) == 0 {
		return nil, nil
	}
	results := make([]kv.Result, len(entries))
	for done := 0; done < len(entries) && m.failed == nil; {
		done += m.applyBatch(entries[done:], results[done:], answering)
	}
	if m.failed != nil {
		m.executor.w.Abandon()
		release(results)
		return nil, m.failed
	}
	return results, nil
}

// applyBatch applies entries in one engine batch, until it is large, and returns their number. An error is in failed.
func (m *Machine) applyBatch(entries []consensus.Entry, results []kv.Result, answering Answering) (done int) {
	m.position.begin(entries[len(entries)-1].Index)
	m.executor.begin(m.store.Begin(), len(entries), m.hub.Wanted(), answering)
	mark := m.Applied()
	for done < len(entries) && (done == 0 || m.executor.w.BatchBytes() < maxBatchBytes) {
		e := &entries[done]
		if e.Index != mark.Index+1 || e.Term < mark.Term {
			invariant.Broken("entry %v is applied after %v", e.Position(), mark)
		}
		mark = e.Position()
		m.sessions.mu.Lock()
		did, err := m.applyEntry(e, &results[done])
		m.sessions.mu.Unlock()
		if err != nil {
			m.failed = err // the writer is not committed: the machine cannot continue
			return done
		}
		did.users, did.tables = m.Users().Sum(), m.tableSum()
		m.chain.add(e, m.executor.w.Revision(), &did)
		done++
	}
	m.failed = m.commit(mark)
	return done
}

// tableSum is a hash of all rows of the tables that level 2 brought: of limits and their uses, of moments, of the audit, and of
// the backup. It is zero if there are none.
func (m *Machine) tableSum() uint64 {
	return m.limits.settle() ^ m.moments.sum ^ m.audit.state.Load().sum ^ m.backup.sum
}

// commit makes the batch visible and publishes it to the watchers.
func (m *Machine) commit(mark consensus.Position) error {
	w, events := m.executor.w, &m.executor.events
	m.sessions.flush(w)
	m.limits.flush(w)
	m.row = appendPosition(m.row[:0], mark)
	w.Set(rowApplied, m.row)
	m.row = m.chain.append(m.row[:0])
	w.Set(rowChain, m.row)
	if err := w.Commit(); err != nil {
		return fmt.Errorf("apply: commit entries up to %v: %w", mark, err)
	}
	if m.levels.raised { // durable at once, so that a build without the level cannot start before this entry
		if err := m.engine.Flush(); err != nil {
			return fmt.Errorf("apply: flush entries up to %v: %w", mark, err)
		}
		m.levels.raised = false
	}
	m.chain.publish(mark.Index)
	m.position.finish(mark)
	if rev := m.store.Revision(); events.wanted {
		m.hub.Publish(rev, events.events)
	} else {
		m.hub.Advance(rev)
	}
	m.executor.end()
	return nil
}

// applyEntry applies one entry. The error is an operating error.
func (m *Machine) applyEntry(e *consensus.Entry, res *kv.Result) (effect, error) {
	switch e.Kind {
	case consensus.EntryNoop:
		return effect{}, m.applyNoop(e, res)
	case consensus.EntryConfig:
		return effect{}, m.applyConfig(e, res)
	case consensus.EntryCommand:
		return m.applyCommand(e, res)
	case consensus.EntryAbort:
		return effect{}, m.applyAbort(e, res)
	}
	return effect{}, fmt.Errorf("%w: entry %v has kind %d", unread(consensus.CheckEntry(e)), e.Position(), e.Kind)
}

// applyCommand follows docs/fast-path.md, "Applying": the proposal's session decides first, then the exact revision, then the
// command itself.
func (m *Machine) applyCommand(e *consensus.Entry, res *kv.Result) (did effect, err error) {
	x := &m.executor
	w := x.w
	var s *session
	if !e.Proposal.IsZero() {
		if s = m.sessions.find(e.Proposal.Session); s != nil && s.has(e.Proposal.Sequence) {
			*res, err = m.sessions.first(s, e.Proposal)
			return effect{}, err
		}
	}
	if e.ExactRevision != 0 && kv.Revision(e.ExactRevision) <= w.Revision() {
		*res = kv.Result{Err: kv.ErrSkipped, Revision: w.Revision()}
		return effect{}, nil
	}
	rejected, err := m.levels.judge(e)
	if err != nil {
		return effect{}, err
	}
	cmd, decodeErr := x.decoder.Decode(e.Payload)
	if rejected {
		cmd, decodeErr = kv.Command{}, kv.ErrBadCommand
	} else if errors.Is(decodeErr, level.ErrLater) {
		return effect{}, fmt.Errorf("%w: entry %v", ErrUnknownCommand, e.Position())
	}
	if s == nil && !e.Proposal.IsZero() {
		if s = m.sessions.openFor(w, e, &cmd); s == nil {
			*res = kv.Result{Err: kv.ErrSessionUnknown, Revision: w.Revision()}
			return effect{}, nil
		}
	}
	x.answer.clear()
	if decodeErr != nil {
		*res = kv.Result{Err: kv.ErrBadCommand} // on every member: see levelTable.judge
	} else if cmd.Raise != nil {
		if res.Err = permit(x.auth.state.Load(), x.keys(), &cmd); res.Err == nil {
			res.Err, err = m.levels.raise(w, m.cluster, cmd.Raise)
		}
		if err != nil {
			return effect{}, fmt.Errorf("apply: entry %v: %w", e.Position(), err)
		}
		x.counts.Note(counts.ClusterVersionSet, res.Err)
	} else if op := cmd.LeaseRevoke; op != nil && op.Term != 0 && op.Term != uint64(e.Term) {
		*res = kv.Result{Err: kv.ErrDeposed}
	} else {
		if e.ExactRevision != 0 {
			w.BeginCommandAt(kv.Revision(e.ExactRevision))
		} else {
			w.BeginCommand()
		}
		asOffered(e, &cmd)
		m.attribute(e, &cmd)
		x.answer.begin(e.Proposal, &cmd, w.Revision())
		m.executeAside(&cmd, res)
		x.answer.end(res)
		did = effect{events: w.EndCommand(), err: res.Err, author: w.Attributed()}
		m.limits.note(did.events)
		x.events.add(did.events)
	}
	res.Revision = w.Revision()
	if s != nil && !s.gone {
		m.sessions.keep(s, e.Proposal.Sequence, res, &x.answer)
	}
	return did, w.Err()
}

// attribute says by whom the changes of a command are, from the feature level on that keeps it. A proposal has the same member,
// or client, and user whichever of its entries is executed.
func (m *Machine) attribute(e *consensus.Entry, cmd *kv.Command) {
	first := !m.executor.attributed
	if m.executor.attributed = true; m.levels.now() < level.Second {
		m.executor.w.Attribute(nil)
		return
	}
	if !first && m.options.Faults.FirstAuthor {
		return
	}
	by := kv.Author{Member: uint64(e.Proposal.Session.Member), Client: e.Proposal.Session.OfClient(), User: cmd.By.User,
		Expired: cmd.LeaseRevoke != nil && cmd.LeaseRevoke.Term != 0}
	m.executor.w.Attribute(&by)
}

// executeAside unlocks the sessions while it executes the command, unless the command is about them: a command may take long,
// and the member's loop, which asks Decided, must not wait for it.
func (m *Machine) executeAside(cmd *kv.Command, res *kv.Result) {
	if cmd.SessionOpen == nil && cmd.SessionRetire == nil {
		m.sessions.mu.Unlock()
		defer m.sessions.mu.Lock()
	}
	m.executor.execute(cmd, res)
}

// applyAbort makes kv.ErrAborted the result of a proposal that has none (docs/fast-path.md, "Forgetting"). A later entry of the
// proposal finds that result and does nothing. A session that is not open needs no result: it refuses the entry anyway, and
// only an entry from before the proposal could open it.
func (m *Machine) applyAbort(e *consensus.Entry, res *kv.Result) (err error) {
	w := m.executor.w
	*res = kv.Result{Err: kv.ErrSessionUnknown, Revision: w.Revision()}
	s := m.sessions.find(e.Proposal.Session)
	if s == nil {
		return nil
	}
	if s.has(e.Proposal.Sequence) {
		*res, err = m.sessions.first(s, e.Proposal)
		return err
	}
	res.Err = kv.ErrAborted
	m.keepBare(s, e.Proposal.Sequence, res)
	return w.Err()
}

// keepBare keeps a result without keys and values.
func (m *Machine) keepBare(s *session, sequence uint64, res *kv.Result) {
	m.executor.answer.clear()
	m.sessions.keep(s, sequence, res, &m.executor.answer)
}

// applyConfig makes the configuration of an entry the applied one. No check refuses it, not even an unknown session.
func (m *Machine) applyConfig(e *consensus.Entry, res *kv.Result) error {
	w := m.executor.w
	removed, err := m.config.applyChange(w, e)
	if err != nil {
		return err
	}
	m.bury(removed, e.Index)
	res.Revision = w.Revision()
	// The proposer may have removed itself, and its session with it, by this entry.
	if s := m.sessions.find(e.Proposal.Session); s != nil && !e.Proposal.IsZero() && !s.has(e.Proposal.Sequence) {
		m.keepBare(s, e.Proposal.Sequence, res)
	}
	return w.Err()
}

// applyNoop settles the configuration that the entry names, if it names one.
func (m *Machine) applyNoop(e *consensus.Entry, res *kv.Result) error {
	w := m.executor.w
	res.Revision = w.Revision()
	removed, err := m.config.applyNoop(w, e)
	if err != nil {
		return err
	}
	m.bury(removed, e.Index)
	return w.Err()
}

// bury deletes the rows of members that were removed for ever: what they published, and their alarms, which no other member
// could disarm. They open no more sessions. Their open sessions stay until the leader retires them, some time later: requests
// that clients just sent to such a member may still be under way. The tombstone stays.
func (m *Machine) bury(members []consensus.MemberID, at consensus.Index) {
	w := m.executor.w
	for _, member := range members {
		if m.members.bury(w, member, at) {
			m.sessions.forgetNumber(w, member)
			m.alarms.change(w, &kv.AlarmOp{Member: uint64(member)})
		}
	}
}
