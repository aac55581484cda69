package check

import (
	"bytes"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/quorum"
	"github.com/quorate/quorate/internal/consensus/tally"
	"github.com/quorate/quorate/internal/kv"
)

// fastPath checks the promises of the fast path (docs/fast-path.md, "Laws"): every member applies an entry whose proposer had
// an answer before the commit once, at the promised revision and with the promised result (L1); the configuration under which
// the promise was made is durable on a superquorum of its voters (L5); and a voter answers for a record only once its disk
// holds it. L2 and L4 are in revisions.go, L3 and L6 in realtime.go.
type fastPath struct {
	promised map[consensus.ProposalID]promise
	applied  map[consensus.ProposalID]appliedAt
	records  map[consensus.MemberID]map[consensus.AttemptID]bool // on disk
	leaving  map[consensus.MemberID]map[consensus.AttemptID]bool // a write that takes them out is under way
}

// promise is a result that a proposer learned before the commit.
type promise struct {
	revision uint64
	reply    []byte
	member   consensus.MemberID
}

// appliedAt is the first time that an entry of a proposal was applied, and its result.
type appliedAt struct {
	revision uint64
	reply    []byte
}

func (w *fastPath) init() {
	w.promised = map[consensus.ProposalID]promise{}
	w.applied = map[consensus.ProposalID]appliedAt{}
	w.leaving = map[consensus.MemberID]map[consensus.AttemptID]bool{}
	w.records = map[consensus.MemberID]map[consensus.AttemptID]bool{}
}

// FastDecided records that a member learned that its proposals are decided.
func (s *Suite) FastDecided(member consensus.MemberID, decided []tally.Decision) {
	for i := range decided {
		s.judgeSuperquorum(member, decided[i].Config)
		p := promise{decided[i].Revision, decided[i].Reply, member}
		if before, twice := s.fastPath.promised[decided[i].Proposal]; twice && before.revision != p.revision {
			s.report("fast-path", "proposal %v was promised at revision %d and at %d", decided[i].Proposal, before.revision,
				p.revision)
		}
		s.fastPath.promised[decided[i].Proposal] = p
		s.Fast++
		if at, done := s.fastPath.applied[decided[i].Proposal]; done {
			s.fastPath.judge(s, decided[i].Proposal, p, at)
		}
	}
}

// judgeSuperquorum checks that a superquorum of the voters has the entry that made them voters.
func (s *Suite) judgeSuperquorum(member consensus.MemberID, id consensus.ConfigID) {
	c, _ := s.logs.of(member).find(id)
	if c == nil || c.id.Index == 0 {
		return // the first configuration, which all members have from the start, or one that a snapshot brought
	}
	voters, n := c.config.Settle().Voters, 0
	for _, voter := range voters {
		if s.durable.of(voter).log.holds(c.position()) {
			n++
		}
	}
	if n < quorum.Super(len(voters)) {
		s.report("fast-path", "member %v was answered under configuration %v, which %d of %d voters have on disk", member, id,
			n, len(voters))
	}
}

// executed is called with an entry of a proposal that was not passed over. Only the first entry counts: once the session has
// ended, a later one has no result.
func (w *fastPath) executed(s *Suite, id consensus.ProposalID, result *kv.Result) {
	at := appliedAt{uint64(result.Revision), result.Append(nil)}
	if _, before := w.applied[id]; before || id.IsZero() {
		return
	}
	w.applied[id] = at
	if p, promised := w.promised[id]; promised {
		w.judge(s, id, p, at)
	}
}

func (w *fastPath) judge(s *Suite, id consensus.ProposalID, p promise, at appliedAt) {
	if p.revision != at.revision || !bytes.Equal(p.reply, at.reply) {
		s.report("fast-path", "member %v was told that proposal %v gets revision %d, it got %d; replies %x and %x",
			p.member, id, p.revision, at.revision, p.reply, at.reply)
	}
}

// finish reports promises that were never kept.
func (w *fastPath) finish(s *Suite) {
	for id, p := range w.promised {
		if _, done := w.applied[id]; !done {
			s.report("fast-path", "member %v was told that proposal %v gets revision %d, and nobody ever applied it",
				p.member, id, p.revision)
		}
	}
}

// ForgettingRecords records that a write is under way that removes records from a member's pool, or adds some.
func (s *Suite) ForgettingRecords(member consensus.MemberID, changes []consensus.WitnessRecord) {
	for i := range changes {
		if changes[i].Forget {
			if s.fastPath.leaving[member] == nil {
				s.fastPath.leaving[member] = map[consensus.AttemptID]bool{}
			}
			s.fastPath.leaving[member][changes[i].Attempt] = true
		}
	}
}

// SyncedRecords records that a write of a member, which changes its pool, is on disk.
func (s *Suite) SyncedRecords(member consensus.MemberID, changes []consensus.WitnessRecord) {
	if len(changes) == 0 {
		return
	}
	held := s.fastPath.records[member]
	if held == nil {
		held = map[consensus.AttemptID]bool{}
		s.fastPath.records[member] = held
	}
	for i := range changes {
		if changes[i].Forget {
			delete(held, changes[i].Attempt)
			delete(s.fastPath.leaving[member], changes[i].Attempt)
		} else {
			held[changes[i].Attempt] = true
		}
	}
}

// RecoveredRecords records the pool of a member after a restart.
func (s *Suite) RecoveredRecords(member consensus.MemberID, records []consensus.Record) {
	found := map[consensus.AttemptID]bool{}
	for i := range records {
		found[consensus.AttemptIDOf(records[i].Attempt)] = true
	}
	for id := range s.fastPath.records[member] {
		if !found[id] && !s.fastPath.leaving[member][id] {
			s.report("fast-path", "member %v restarts without the record %x that it had synced", member, id[:])
		}
	}
	s.fastPath.records[member] = found
	delete(s.fastPath.leaving, member)
}

// recorded is called with a voter's answers.
func (w *fastPath) recorded(s *Suite, m *consensus.Message) {
	for i := range m.Verdicts {
		v := &m.Verdicts[i]
		if v.Refusal == consensus.RefusedNot && !w.records[m.From][consensus.AttemptIDOf(v.Attempt)] && w.waits(v.Proposal) {
			s.report("durable-before-ack", "member %v holds %v at revision %d, but not on disk", m.From, v.Proposal, v.Revision)
		}
	}
}

// waits reports whether a proposal has not been applied anywhere. Once it has been, voters may drop its records.
func (w *fastPath) waits(id consensus.ProposalID) bool {
	_, done := w.applied[id]
	return !done
}
