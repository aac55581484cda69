package check

import (
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/storage/wal"
)

// promises checks what voters promise (docs/fast-path.md, "Accepting"): the revision of a new record is greater than any that
// an entry of the voter's log can have, and no greater than the one that comes after its log and its records.
type promises struct {
	takes   map[consensus.Position]taken // of all entries that any log had
	members map[consensus.MemberID]*promiser
}

// taken is of which proposal an entry is, and which revision it takes: the next one, if exact is zero.
type taken struct {
	proposal consensus.ProposalID
	exact    kv.Revision
	some     bool // it takes one
}

// after returns how far a log that may have reached a revision may reach with the entry.
func (t taken) after(bound kv.Revision) kv.Revision {
	switch {
	case t.exact != 0:
		return max(bound, t.exact)
	case t.some:
		return bound + 1
	}
	return bound
}

// promiser is what a voter knows as it promises.
type promiser struct {
	applied consensus.Index   // its core knew at the last write that so much is applied
	cut     bool              // entries of this write take the place of others
	entries []consensus.Entry // of this write
	held    map[wal.AttemptID]consensus.Attempt
}

func (p *promises) init() {
	p.takes, p.members = map[consensus.Position]taken{}, map[consensus.MemberID]*promiser{}
}

func (p *promises) of(member consensus.MemberID) *promiser {
	v := p.members[member]
	if v == nil {
		v = &promiser{held: map[wal.AttemptID]consensus.Attempt{}}
		p.members[member] = v
	}
	return v
}

// appended notes which revision an entry takes.
func (p *promises) appended(e *consensus.Entry) {
	revises := e.Kind == consensus.EntryCommand && (e.ExactRevision != 0 || kv.Revises(e.Payload))
	p.takes[e.Position()] = taken{e.Proposal, kv.Revision(e.ExactRevision), revises}
}

// Restarted tells what a member found in its pool as it started.
func (s *Suite) Restarted(member consensus.MemberID, records []consensus.Record) {
	v := s.promises.of(member)
	clear(v.held)
	v.applied = 0
	for i := range records {
		v.held[wal.AttemptOf(records[i].Attempt)] = records[i].Attempt
	}
}

// Recording tells that a write is under way, before the Suite hears of its parts, and up to where the core knows that its log
// is applied.
func (s *Suite) Recording(member consensus.MemberID, term consensus.Term, applied consensus.Index, b *wal.Batch) {
	entries, changes := b.Entries, b.Witness
	v, w := s.promises.of(member), s.logs.of(member)
	for i := range entries {
		s.promises.appended(&entries[i])
	}
	before := w.last()
	if len(entries) > 0 {
		v.cut = entries[0].Index <= before
		before = min(before, entries[0].Index-1) // a record may be older than these entries or younger
	}
	v.entries = entries
	for i := range changes {
		c := &changes[i]
		if c.Forget {
			continue // until all are judged: it may have been there for the next
		}
		record, _, err := consensus.DecodeRecord(c.Payload)
		if err != nil {
			continue
		}
		if b.Reset == nil && v.applied >= w.base.Index && record.Term == term { // else it was answered, and truncated
			s.judgePromise(member, v, &record, before, applied)
		}
		v.held[c.Attempt] = record.Attempt
	}
	for i := range changes {
		if changes[i].Forget {
			delete(v.held, changes[i].Attempt)
		}
	}
	v.applied, v.cut, v.entries = applied, false, nil
}

func (s *Suite) judgePromise(
	member consensus.MemberID, v *promiser, record *consensus.Record, before, applied consensus.Index,
) {
	revision := kv.Revision(record.Revision)
	if bound, _, known := s.boundOf(member, applied, before); known && revision <= bound {
		s.report("promised-order", "member %v promises %v revision %d, and its log may reach %d", member, record.Proposal,
			revision, bound)
	}
	if v.cut {
		return // what was promised may have been before
	}
	bound, logged, known := s.boundOf(member, v.applied, s.logs.of(member).last())
	if !known {
		return
	}
	top := v.reach(bound, logged)
	for i := range v.entries { // it may have been promised before any of them, which may take the place of a record
		t := s.promises.takes[v.entries[i].Position()]
		bound, logged[t.proposal] = t.after(bound), true
		top = max(top, v.reach(bound, logged))
	}
	if revision > top+1 {
		s.report("promised-order", "member %v promises %v revision %d, and its log and records reach %d", member,
			record.Proposal, revision, top)
	}
}

// reach returns how far records reach that come after a log with these proposals, which may reach bound.
func (p *promiser) reach(bound kv.Revision, logged map[consensus.ProposalID]bool) kv.Revision {
	top := kv.Revision(0)
	for _, held := range p.held {
		top = max(top, kv.Revision(held.Revision))
		if !logged[held.Proposal] {
			bound++
		}
	}
	return max(bound, top)
}

// boundOf returns the greatest revision that a member's log may reach up to an index, for all that is known if it is applied
// up to another, and the proposals between them; false if nobody has told how far that is.
func (s *Suite) boundOf(member consensus.MemberID, applied, last consensus.Index) (
	bound kv.Revision, logged map[consensus.ProposalID]bool, known bool,
) {
	if applied == 0 || int(applied) > len(s.machine.revisions) {
		return 0, nil, false
	}
	bound, logged = s.machine.revisions[applied-1], map[consensus.ProposalID]bool{}
	for index := applied + 1; index <= last; index++ {
		term, _ := s.logs.of(member).term(index)
		t := s.promises.takes[consensus.Position{Index: index, Term: term}]
		logged[t.proposal] = true
		bound = t.after(bound)
	}
	return bound, logged, true
}
