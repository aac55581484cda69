package check

import (
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/quorum"
	"github.com/quorate/quorate/internal/kv"
)

// promises checks the promises of voters (docs/fast-path.md, "Accepting"): the revision of a new record is greater than any
// that an entry of the voter's log can have, and at most the next one after its log and its records.
type promises struct {
	takes   map[consensus.Position]taken // of all entries that any log had
	members map[consensus.MemberID]*promiser
}

// taken is the proposal of an entry, and the revision that it takes: the next one, if exact is zero.
type taken struct {
	proposal consensus.ProposalID
	exact    kv.Revision
	some     bool // it takes one
}

// after returns the highest revision of a log after this entry, given the highest one before it.
func (t taken) after(bound kv.Revision) kv.Revision {
	switch {
	case t.exact != 0:
		return max(bound, t.exact)
	case t.some:
		return bound + 1
	}
	return bound
}

// promiser is the state of a voter when it promises.
type promiser struct {
	applied consensus.Index   // the core's applied index at the last write
	cut     bool              // entries of this write replace others
	entries []consensus.Entry // of this write
	held    map[consensus.AttemptID]consensus.Attempt
}

func (p *promises) init() {
	p.takes, p.members = map[consensus.Position]taken{}, map[consensus.MemberID]*promiser{}
}

func (p *promises) of(member consensus.MemberID) *promiser {
	v := p.members[member]
	if v == nil {
		v = &promiser{held: map[consensus.AttemptID]consensus.Attempt{}}
		p.members[member] = v
	}
	return v
}

// appended notes the revision that an entry takes.
func (p *promises) appended(e *consensus.Entry) {
	revises := e.Kind == consensus.EntryCommand && (e.ExactRevision != 0 || kv.Revises(e.Payload))
	p.takes[e.Position()] = taken{e.Proposal, kv.Revision(e.ExactRevision), revises}
}

// Restarted records the pool with which a member starts.
func (s *Suite) Restarted(member consensus.MemberID, records []consensus.Record) {
	v := s.promises.of(member)
	clear(v.held)
	v.applied = 0
	for i := range records {
		v.held[consensus.AttemptIDOf(records[i].Attempt)] = records[i].Attempt
	}
}

// Recording records that a write is under way, before the Suite is called with its parts, and up to which index the core knows
// that its log is applied.
func (s *Suite) Recording(member consensus.MemberID, term consensus.Term, applied consensus.Index, b *consensus.Batch) {
	entries, changes := b.Entries, b.Witness
	v, w := s.promises.of(member), s.logs.of(member)
	for i := range entries {
		s.promises.appended(&entries[i])
	}
	s.judgeRecovered(member, entries)
	before := w.last()
	if len(entries) > 0 {
		v.cut = entries[0].Index <= before
		before = min(before, entries[0].Index-1) // a record may be older or younger than these entries
	}
	v.entries = entries
	for i := range changes {
		c := &changes[i]
		if c.Forget {
			continue // until all are judged: the next one may have been promised while it was there
		}
		record, err := consensus.DecodeRecord(c.Payload)
		if err != nil {
			continue
		}
		if b.Reset == nil && v.applied >= w.base.Index && record.Term == term { // else an answered entry, truncated
			s.judgePromise(member, v, &record, before, applied)
		}
		v.held[c.Attempt] = record.Attempt
		s.recoveries.recorded(record.Attempt, holding{member, record.Config})
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
		return // the promise may be older
	}
	// The promise was made at some moment since the last write, when the log was applied up to that index or further. Once an
	// entry that was passed over is applied, the record of another attempt counts beside it.
	top := kv.Revision(0)
	for at := v.applied; revision > top+1; at++ {
		if at > v.applied && at > applied {
			s.report("promised-order", "member %v promises %v revision %d, and its log and records reach %d", member,
				record.Proposal, revision, top)
			return
		}
		reach, known := s.promisedUpTo(member, v, at)
		if !known {
			return
		}
		top = max(top, reach)
	}
}

// promisedUpTo returns the highest revision in the log and the records of a member that has applied its log up to an index.
func (s *Suite) promisedUpTo(member consensus.MemberID, v *promiser, applied consensus.Index) (kv.Revision, bool) {
	bound, logged, known := s.boundOf(member, applied, s.logs.of(member).last())
	if !known {
		return 0, false
	}
	top := v.reach(bound, logged)
	for i := range v.entries { // the promise may be older than any of them, and an entry may replace a record
		t := s.promises.takes[v.entries[i].Position()]
		bound, logged[t.proposal] = t.after(bound), true
		top = max(top, v.reach(bound, logged))
	}
	return top, true
}

// reach returns the highest revision that records can take after a log with these proposals, whose highest one is bound.
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

// boundOf returns the highest revision that a member's log can reach up to the index last, if it is applied up to applied, and
// the proposals between them; false if the revision at applied is unknown.
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

// recoveries checks the entries that new leaders recover (docs/fast-path.md, "After an election"): a recovered attempt, with
// its payload, was held at some time by a recovery quorum of the voters of one configuration.
type recoveries struct {
	voters  map[consensus.ConfigID]int
	held    map[consensus.Attempt]map[holding]bool
	started map[consensus.Term]bool // the no-op of the term was logged by a member
	judged  map[consensus.Position]bool
}

// holding is a member that recorded an attempt under a configuration. A leader that answered it has no configuration here.
type holding struct {
	member consensus.MemberID
	config consensus.ConfigID
}

func (r *recoveries) init() {
	r.voters, r.held = map[consensus.ConfigID]int{}, map[consensus.Attempt]map[holding]bool{}
	r.started, r.judged = map[consensus.Term]bool{}, map[consensus.Position]bool{}
}

// configured notes how many voters a configuration has; if its two stages differ, the smaller number.
func (r *recoveries) configured(id consensus.ConfigID, config *consensus.Config) {
	id.Stage = 0
	n := len(config.Voters)
	if known, ok := r.voters[id]; ok {
		n = min(n, known)
	}
	r.voters[id] = n
}

// recorded notes that a member holds a record, or an entry that stands for one.
func (r *recoveries) recorded(attempt consensus.Attempt, by holding) {
	by.config.Stage = 0
	if r.held[attempt] == nil {
		r.held[attempt] = map[holding]bool{}
	}
	r.held[attempt][by] = true
}

// enough reports whether a recovery quorum of the voters of one configuration held an attempt.
func (r *recoveries) enough(attempt consensus.Attempt) bool {
	members := map[consensus.ConfigID]map[consensus.MemberID]bool{}
	for h := range r.held[attempt] {
		if h.config != (consensus.ConfigID{}) {
			members[h.config] = map[consensus.MemberID]bool{}
		}
	}
	for config := range members {
		for h := range r.held[attempt] {
			if h.config == config || h.config == (consensus.ConfigID{}) {
				members[config][h.member] = true
			}
		}
		if n, known := r.voters[config]; !known || len(members[config]) >= quorum.Recovery(n) {
			return true
		}
	}
	return len(members) == 0 && len(r.held[attempt]) > 0 // only leaders held it, and their configuration is unknown
}

// judgeRecovered checks entries that a member writes: the entries of a term before its no-op are those that its leader
// recovered.
func (s *Suite) judgeRecovered(member consensus.MemberID, entries []consensus.Entry) {
	r := &s.recoveries
	for i := range entries {
		e := &entries[i]
		if e.ExactRevision != 0 && e.Answered == member {
			r.recorded(e.Attempt(), holding{member: member})
		}
		switch {
		case e.Kind == consensus.EntryNoop:
			r.started[e.Term] = true
		case e.ExactRevision == 0 || r.judged[e.Position()]:
		case !r.started[e.Term] && !r.enough(e.Attempt()):
			s.report("recovered", "the leader of term %d recovers %v at revision %d, which too few voters held with its "+
				"payload", e.Term, e.Proposal, e.ExactRevision)
		}
		r.judged[e.Position()] = true
	}
}
