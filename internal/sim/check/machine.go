package check

import (
	"bytes"
	"errors"
	"slices"

	"github.com/quorate/quorate/internal/auth"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/sim/permits"
)

// machine checks that all members apply the same log with the same results, and that these are the results of the reference
// model; and that members that have applied up to the same index hold equal states.
type machine struct {
	model     *Model
	outcomes  []outcome     // of the entry at index i+1, as the model and the first member had it
	revisions []kv.Revision // of the model after index i+1
	sessions  map[consensus.SessionID]bool
	newest    map[consensus.MemberID]uint64 // the highest number of each member's sessions
	removed   map[consensus.MemberID]bool
	asked     *auth.Change // of the last command that changes users
	edited    bool         // that command has changed them
	results   map[consensus.ProposalID]kv.Result
	hashes    map[hashKey]uint32
	holders   map[hashKey]consensus.MemberID
	levels    levels
	past      past
	backups   Backups
	audits    audits
}

type outcome struct {
	err      error
	revision kv.Revision
}

type hashKey struct{ revision, compacted kv.Revision }

func (m *machine) init() {
	m.model, m.past, m.audits.heads = NewModel(), newPast(), map[uint64][]kv.AuditHeadRow{}
	m.sessions = map[consensus.SessionID]bool{}
	m.newest = map[consensus.MemberID]uint64{}
	m.removed = map[consensus.MemberID]bool{}
	m.results = map[consensus.ProposalID]kv.Result{}
	m.hashes = map[hashKey]uint32{}
	m.holders = map[hashKey]consensus.MemberID{}
}

func (m *machine) applied(s *Suite, member consensus.MemberID, e *consensus.Entry, got *kv.Result) {
	at := int(e.Index) - 1
	if at > len(m.outcomes) {
		return // the checker of logs has reported it
	}
	if at == len(m.outcomes) {
		m.first(s, member, e, got)
		return
	}
	want := m.outcomes[at]
	if decides(e) && (!errors.Is(got.Err, want.err) || got.Revision != want.revision) {
		s.report(lawOf(want.err, got.Err), "member %v applied %v to revision %d (%v), others to %d (%v)",
			member, e.Position(), got.Revision, got.Err, want.revision, want.err)
	}
}

// first runs the model when the first member applies an entry, and compares the whole result.
func (m *machine) first(s *Suite, member consensus.MemberID, e *consensus.Entry, got *kv.Result) {
	if !decides(e) {
		m.removedMembers(s)
		s.changeCommitted(e)
		m.outcomes = append(m.outcomes, outcome{revision: m.model.Revision})
		m.revisions = append(m.revisions, m.model.Revision)
		return
	}
	before := m.model.Revision
	want, again := m.expect(s, e)
	if m.model.changed && !again {
		m.model.changed, m.edited = false, true
	}
	if _, kept := m.results[e.Proposal]; kept && !again {
		s.fastPath.executed(s, e.Proposal, got)
	}
	m.outcomes = append(m.outcomes, outcome{want.Err, want.Revision})
	m.revisions = append(m.revisions, m.model.Revision)
	if !sameError(want.Err, got.Err) || want.Revision != got.Revision {
		s.report(lawOf(want.Err, got.Err), "member %v applied %v %v to revision %d (%v), the model says %d (%v)",
			member, e.Position(), e.Proposal, got.Revision, got.Err, want.Revision, want.Err)
		return
	}
	if why := differs(&want, got); why != "" {
		s.report("state-machine", "member %v applied %v %v with another result than the model: %s",
			member, e.Position(), e.Proposal, why)
	}
	if again {
		s.onceAgain(e, before)
	} else if want.Err == nil {
		s.revisionUsed(e, before)
	}
}

// lawOf returns the law that is broken by an outcome other than that of the model.
func lawOf(want, got error) string {
	switch {
	case sameError(want, got):
	case permits.ForWantOfPermission(want), permits.ForWantOfPermission(got):
		return "permission"
	case errors.Is(want, kv.ErrOverQuota), errors.Is(got, kv.ErrOverQuota):
		return "quota"
	}
	return "state-machine"
}

// decides reports whether the state machine produces a result for an entry.
func decides(e *consensus.Entry) bool {
	return e.Kind == consensus.EntryCommand || e.Kind == consensus.EntryAbort
}

func sameError(a, b error) bool {
	return (a == nil) == (b == nil) && (a == nil || errors.Is(b, a))
}

// expect returns the model's result; again says that it was remembered from an earlier entry of the same proposal.
func (m *machine) expect(s *Suite, e *consensus.Entry) (result kv.Result, again bool) {
	exact := kv.Revision(e.ExactRevision)
	if first, ok := m.results[e.Proposal]; ok && m.sessions[e.Proposal.Session] {
		return first, true
	}
	if exact != 0 && exact <= m.model.Revision {
		s.Skipped++
		return kv.Result{Err: kv.ErrSkipped, Revision: m.model.Revision}, false
	}
	if e.Kind == consensus.EntryAbort {
		return m.abort(s, e), false
	}
	command, err := kv.DecodeCommand(e.Payload)
	if err != nil {
		s.report("state-machine", "entry %v does not decode: %v", e.Position(), err)
		return kv.Result{Err: kv.ErrBadCommand, Revision: m.model.Revision}, false
	}
	rejected := m.levels.rejects(e.Payload)
	if rejected {
		command = kv.Command{}
	}
	m.asked = command.Auth
	if exact != 0 && e.Proposal.Session.OfClient() && command.By.User != "" { // each member signed the offer that it got
		command.By.Revision = auth.AnyRevision
	}
	if e.Proposal.IsZero() {
		return m.execute(s, e, &command), false
	}
	session := e.Proposal.Session
	if !m.sessions[session] {
		op := command.SessionOpen
		if op == nil || (consensus.SessionID{Member: consensus.MemberID(op.Member), Number: op.Number}) != session ||
			!m.mayOpen(session) {
			return kv.Result{Err: kv.ErrSessionUnknown, Revision: m.model.Revision}, false
		}
		m.sessions[session] = true
		if !session.OfClient() {
			m.newest[session.Member] = session.Number
		}
	}
	leveled, heldBack := m.level(s, e.Index, &command)
	switch {
	case rejected:
		result = kv.Result{Err: kv.ErrBadCommand, Revision: m.model.Revision}
	case leveled:
		result = kv.Result{Err: heldBack, Revision: m.model.Revision}
	case command.Moment != nil:
		result = kv.Result{Err: m.past.note(s, command.Moment, m.model.Revision), Revision: m.model.Revision}
	case command.Audit != nil:
		result = kv.Result{Err: m.audit(s, &command), Revision: m.model.Revision}
	case command.SessionOpen != nil:
		m.retireOthers(session, command.SessionOpen.Keep)
		result = kv.Result{Revision: m.model.Revision}
	case command.SessionRetire != nil:
		op := command.SessionRetire
		m.retire(consensus.SessionID{Member: consensus.MemberID(op.Member), Number: op.Number})
		result = kv.Result{Revision: m.model.Revision}
	case command.Backup != nil:
		result = kv.Result{Err: m.backup(s, e, &command), Revision: m.model.Revision}
	case command.LeaseRevoke != nil && command.LeaseRevoke.Term != 0 && command.LeaseRevoke.Term != uint64(e.Term):
		result = kv.Result{Err: kv.ErrDeposed, Revision: m.model.Revision}
	default:
		s.Leases.applying(s, &command)
		m.model.endBytes, m.model.quotas.countBytes = s.Leases.EndBytes, s.CountBytes
		result = m.execute(s, e, &command)
		s.Leases.Parts = m.model.parts
	}
	m.results[e.Proposal] = result
	return result, false
}

// audit applies a command of the audit, if its user may run it.
func (m *machine) audit(s *Suite, command *kv.Command) error {
	if err := m.model.permit(command); err != nil {
		return err
	}
	m.audits.most = s.MostHeads
	return m.audits.change(command.Audit, m.removed)
}

// execute runs a command, and notes by whom and when its revision was made.
func (m *machine) execute(s *Suite, e *consensus.Entry, command *kv.Command) kv.Result {
	before := m.model.Revision
	result := m.model.apply(command, kv.Revision(e.ExactRevision))
	if m.model.Revision > before {
		m.past.wrote(s, e, command, m.model.Revision)
	}
	return result
}

// level applies a command to the levels, if it is about them and its user may run it.
func (m *machine) level(s *Suite, index consensus.Index, command *kv.Command) (about bool, err error) {
	if command.LevelPolicy != nil || command.Raise != nil {
		if err := m.model.permit(command); err != nil {
			return true, err
		}
	}
	about, err = m.levels.apply(configBefore(s, index), command)
	m.levels.note(index)
	if wrong := s.Soaks.applied(m.levels.soaks, m.levels.seconds); wrong != "" {
		s.report("soak", "%s", wrong)
	}
	return about, err
}

// backup applies a command of the backup, if its user may run it.
func (m *machine) backup(s *Suite, e *consensus.Entry, command *kv.Command) error {
	if err := m.model.permit(command); err != nil {
		return err
	}
	m.backups.last = e.Index
	return m.backups.applied(s.Now(), command.Backup, func(member uint64) bool { return m.removed[consensus.MemberID(member)] })
}

// configBefore is the configuration of the last configuration entry before an index.
func configBefore(s *Suite, index consensus.Index) before {
	lineage := s.removals.lineage
	at := len(lineage) - 1
	for at > 0 && lineage[at].id.Index >= index {
		at--
	}
	if c := &lineage[at]; c.activates() && c.doneAt(index-1) {
		settled := c.config.Settle()
		return before{&settled, c.id.Index}
	}
	return before{&lineage[at].config, lineage[at].id.Index}
}

// abort returns the result of an abort.
func (m *machine) abort(s *Suite, e *consensus.Entry) kv.Result {
	result := kv.Result{Err: kv.ErrSessionUnknown, Revision: m.model.Revision}
	if m.sessions[e.Proposal.Session] {
		result.Err = kv.ErrAborted
		m.results[e.Proposal] = result
	}
	return result
}

func (m *machine) retire(session consensus.SessionID) {
	row := session.Member
	if session.OfClient() {
		if row = consensus.NoMember; !m.sessions[session] {
			return
		}
	}
	delete(m.sessions, session)
	m.newest[row] = max(m.newest[row], session.Number)
}

// mayOpen is the rule of ADR 0001 for members, and of ADR 0015 for clients: clients share one sequence of numbers, the highest
// retired one, and a client does not go back behind a session that it has.
func (m *machine) mayOpen(session consensus.SessionID) bool {
	if !session.OfClient() {
		return session.Number > m.newest[session.Member] && !m.removed[session.Member]
	}
	for other := range m.sessions {
		if other.Member == session.Member && other.OfClient() && other.Number >= session.Number {
			return false
		}
	}
	return session.Number > m.newest[consensus.NoMember] && !m.removed[session.Member]
}

// retireOthers retires the sessions of a member that a new session does not keep.
func (m *machine) retireOthers(session consensus.SessionID, keep []uint64) {
	for other := range m.sessions {
		same := other.Member == session.Member && other.OfClient() == session.OfClient()
		if same && other != session && !slices.Contains(keep, other.Number) {
			m.retire(other)
		}
	}
}

// removedMembers notes the members that a change removes for ever, once it is settled: they open no session any more.
func (m *machine) removedMembers(s *Suite) {
	last := &s.removals.lineage[len(s.removals.lineage)-1]
	if !last.doneAt(consensus.Index(len(m.outcomes)) + 1) {
		return
	}
	for _, id := range last.tombs {
		m.removed[id] = true
	}
}

func differs(want, got *kv.Result) string {
	switch {
	case got.Left != nil: // a repeated entry, whose first result was removed with its history
	case want.Put != nil:
		if got.Put == nil || !sameKV(want.Put.Prev, got.Put.Prev) {
			return "previous value of a put"
		}
	case want.Delete != nil:
		if got.Delete == nil || got.Delete.Deleted != want.Delete.Deleted {
			return "number of deleted keys"
		}
	case want.Txn != nil:
		return differsTxn(want.Txn, got.Txn)
	case want.Lease != nil:
		if got.Lease == nil || *got.Lease != *want.Lease {
			return "lease"
		}
	}
	return ""
}

func differsTxn(want, got *kv.TxnResult) string {
	if got == nil || want.Succeeded != got.Succeeded || len(want.Responses) != len(got.Responses) {
		return "outcome of a txn"
	}
	for i := range want.Responses {
		w, g := &want.Responses[i], &got.Responses[i]
		switch {
		case w.Range != nil:
			if g.Range == nil || len(w.Range.KVs) != len(g.Range.KVs) {
				return "range of a txn"
			}
			for j := range w.Range.KVs {
				if !sameKV(&w.Range.KVs[j], &g.Range.KVs[j]) {
					return "range of a txn"
				}
			}
		case w.Delete != nil:
			if g.Delete == nil || g.Delete.Deleted != w.Delete.Deleted {
				return "delete of a txn"
			}
		case w.Txn != nil:
			if why := differsTxn(w.Txn, g.Txn); why != "" {
				return why
			}
		}
	}
	return ""
}

func sameKV(a, b *kv.KeyValue) bool {
	if a == nil || b == nil {
		return a == b
	}
	return bytes.Equal(a.Key, b.Key) && bytes.Equal(a.Value, b.Value) && a.CreateRevision == b.CreateRevision &&
		a.ModRevision == b.ModRevision && a.Version == b.Version && a.Lease == b.Lease
}

// Hashed records a member's HashKV at a revision, with its compact revision.
func (s *Suite) Hashed(member consensus.MemberID, revision, compacted kv.Revision, hash uint32) {
	key := hashKey{revision, compacted}
	if want, ok := s.machine.hashes[key]; ok && want != hash {
		s.report("state-machine", "members %v and %v hash revision %d (compacted at %d) to %x and %x",
			s.machine.holders[key], member, revision, compacted, want, hash)
		return
	}
	s.machine.hashes[key], s.machine.holders[key] = hash, member
}
