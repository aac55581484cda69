package recovery

import (
	"errors"
	"fmt"
	"slices"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/raft"
	"github.com/quorate/quorate/internal/member/datadir"
	"github.com/quorate/quorate/internal/storage/wal"
)

// The operator makes a survivor the only voter. No protocol can do it, because no survivor knows what the lost members have
// acknowledged among themselves. Everything that the survivor's log holds is kept and becomes committed. One configuration
// entry after it removes all others for ever:
//
//	before   ... entry n, of term t
//	after    ... entry n | adopted records, and voters {self}, tombstones {all others}, of term t+gap | hard state: commit
//	                     | the next epoch
//
// It is one write to the log, so that a crash leaves the old state or the new one. The result is a configuration like
// any other: the member starts in no special mode.

// termGap is how far the recovery goes beyond the terms that this member knows. The lost members may have held
// elections without it. An entry of theirs must not have the same index and term as one of ours. A million elections
// would have been noticed.
const termGap consensus.Term = 1 << 20

// Plan is what will be written to a survivor's log.
type Plan struct {
	Config consensus.Config
	Tombs  []consensus.MemberID
	// Undone is the first entry of a change, not known to have committed, that removes this member itself: from there
	// on the log loses its configuration entries and keeps the rest. Zero: there is none.
	Undone consensus.Index
	// Adopted is how many writes are kept that no log has, because the survivor, or a member that was compared, holds
	// them for the fast path. Conflicting is how many others of that kind were given up: of two that conflict at most
	// one was acknowledged, and it cannot be known which.
	Adopted, Conflicting int
	// Before is the epoch of the survivor, Epoch the one that the recovery begins.
	Before, Epoch consensus.Epoch

	dropped  []consensus.Member
	identity wal.Identity
	after    consensus.Position
	reset    *consensus.SnapshotMeta // the log must begin anew after it: a snapshot has put the store ahead
	entries  []consensus.Entry
	hard     consensus.HardState
}

// Errors of planning a recovery.
var (
	// ErrOnlyVoter means that there is nothing to recover.
	ErrOnlyVoter = errors.New("this member is already the only voter of its cluster: there is nothing to recover")
	errNoConfig  = errors.New("this member never learned who its cluster is: it has nothing that could be recovered")
	errRemoved   = errors.New("the cluster removed this member before it lost its quorum: recover another survivor, and " +
		"keep this directory until then")
)

// Plan plans the recovery of s as the only voter. The learners in keep stay. Their logs must be part of that of s (see
// Holds): else they would serve entries that are not part of the history any more. Others are further survivors: the
// records that they hold for the fast path are adopted too.
func (s *Survivor) Plan(keep []consensus.MemberID, others ...*Survivor) (*Plan, error) {
	self := s.Identity.Member
	switch {
	case len(s.Config.Members) == 0:
		return nil, errNoConfig
	case s.Alone() && (len(s.Config.Learners) == 0 || len(keep) > 0):
		return nil, ErrOnlyVoter
	}
	p := &Plan{identity: s.Identity, after: s.Last}
	if s.ahead {
		base := s.base
		p.reset = &base
	}
	last, err := s.lastWithSelf(p)
	if err != nil {
		return nil, err
	}
	me, ok := last.Config.Member(self)
	if !ok {
		return nil, fmt.Errorf("this member is not part of the last configuration that it knows (%v): recover one that is, "+
			"and give it this directory with --compare: it may hold acknowledged writes that the others lack", last.id)
	}
	me.Promote, me.Cordoned = false, false // it is the only one that can lead
	p.Config = consensus.Config{Voters: []consensus.MemberID{self}, Members: []consensus.Member{me}}
	for _, id := range keep {
		if err := p.keep(&last.Config, id, s.NameOf(id)); err != nil {
			return nil, err
		}
	}
	p.Tombs = s.others(&p.Config)
	p.nextEpoch(s, others)
	p.drops(s)
	adopted, conflicting := s.adopt(s.sameEpoch(others))
	p.Adopted, p.Conflicting = len(adopted), conflicting
	p.write(s, last.id, adopted)
	return p, nil
}

// lastWithSelf returns the last configuration that does not remove this member.
func (s *Survivor) lastWithSelf(p *Plan) (configChange, error) {
	self := s.Identity.Member
	if s.Removed() || (slices.Contains(s.base.Tombs, self) && s.base.Open) {
		return configChange{}, errRemoved
	}
	last := configChange{consensus.ConfigChange{Config: s.base.Config}, s.base.ConfigID}
	last.id.Stage = 0
	for _, c := range s.changes {
		if slices.Contains(c.Tombs, self) {
			if c.id.Index <= s.Commit {
				return configChange{}, errRemoved
			}
			p.Undone = c.id.Index
			break
		}
		last = c
	}
	return last, nil
}

// keep adds a learner that stays.
func (p *Plan) keep(from *consensus.Config, id consensus.MemberID, name string) error {
	m, ok := from.Member(id)
	if !ok || !from.IsLearner(id) {
		return fmt.Errorf("%s is not a learner: only learners may stay; add it again with an empty data directory", name)
	}
	if at, found := slices.BinarySearch(p.Config.Learners, id); !found {
		p.Config.Learners = slices.Insert(p.Config.Learners, at, id)
		p.Config.Members = append(p.Config.Members, m)
		slices.SortFunc(p.Config.Members, func(a, b consensus.Member) int {
			if a.ID < b.ID {
				return -1
			}
			return 1
		})
	}
	return nil
}

// others returns all members that the log names and c does not hold. A change that was under way may have added members
// that the last configuration does not hold.
func (s *Survivor) others(c *consensus.Config) []consensus.MemberID {
	ids := slices.Concat(s.base.Config.IDs(), s.base.Tombs)
	for i := range s.changes {
		ids = slices.Concat(ids, s.changes[i].Config.IDs(), s.changes[i].Tombs)
	}
	slices.Sort(ids)
	ids = slices.Compact(ids)
	return slices.DeleteFunc(ids, c.Contains)
}

// write makes the entries: one, unless there is something to undo or to adopt.
func (p *Plan) write(s *Survivor, replaces consensus.ConfigID, adopted []consensus.Record) {
	term := s.Term + termGap
	if p.Undone > 0 {
		for _, e := range s.entries[p.Undone-s.base.Position.Index-1:] {
			e.Term = term
			if e.Kind != consensus.EntryCommand {
				e = consensus.Entry{Index: e.Index, Term: term, Kind: consensus.EntryNoop}
			}
			p.entries = append(p.entries, e)
		}
	}
	index := s.Last.Index
	for _, record := range adopted {
		index++
		p.entries = append(p.entries, consensus.Entry{
			Index: index, Term: term, Kind: consensus.EntryCommand, Proposal: record.Proposal,
			ExactRevision: record.Revision, Payload: record.Payload,
		})
	}
	change := consensus.ConfigChange{
		Protocol: consensus.ProtocolSingle, Replaces: replaces, Config: p.Config, Tombs: p.Tombs,
	}
	index++
	p.entries = append(p.entries, consensus.Entry{
		Index: index, Term: term, Kind: consensus.EntryConfig, Payload: consensus.AppendConfigChange(nil, &change),
	})
	p.hard = consensus.HardState{Term: term, Vote: p.identity.Member, Commit: index}
}

// Covers reports whether everything that other has in its log is part of what p keeps of s, unchanged.
func (p *Plan) Covers(s, other *Survivor) bool {
	return s.Holds(other) && (p.Undone == 0 || other.Last.Index < p.Undone)
}

// Write carries out the plan, and reads the data again to check that a member would start with it. One append to the
// log holds everything, the epoch too; the file that names the dropped members counts only with that epoch. The caller
// has locked the data, which must not have changed since it was inspected.
func (p *Plan) Write(options datadir.Options) error {
	log, found, err := wal.Open(options.WAL())
	if err != nil {
		return err
	}
	if last := found.Last(); found.Identity != p.identity || (p.reset == nil && last != p.after) {
		err = fmt.Errorf("recovery: %s changed while it was looked at: the log ends at %v and not at %v; try again",
			options.Dir, last, p.after)
		return errors.Join(err, log.Close())
	}
	if err = datadir.WriteDropped(options, p.Epoch, p.dropped); err != nil {
		return errors.Join(err, log.Close())
	}
	err = log.Append(wal.Batch{Reset: p.reset, Entries: p.entries, Hard: &p.hard, Epoch: &p.Epoch})
	if err = errors.Join(err, log.Close()); err != nil {
		return fmt.Errorf("recovery: write the recovery to the log: %w", err)
	}
	return p.verify(options)
}

// verify lets the core start with what is on disk now.
func (p *Plan) verify(options datadir.Options) error {
	s, err := Inspect(options)
	if err != nil {
		return err
	}
	replica, err := raft.New(raft.Defaults(p.identity.Member), raft.Restored{
		Hard: consensus.HardState{Term: s.Term, Commit: s.Commit}, Base: s.base, Entries: s.entries, Applied: s.Applied.Index,
	})
	if err != nil {
		return err
	}
	got, want := replica.InForce(), p.hard.Commit
	if s.Identity.Epoch != p.Epoch {
		return fmt.Errorf("recovery: the log was written but is of epoch %v, not %v; keep the directory, which may hold "+
			"acknowledged writes that the others lack, and use another survivor", s.Identity.Epoch, p.Epoch)
	}
	if got.ID.Index != want || !got.Committed || !got.Settled || replica.Status().Removed || s.Removed() ||
		!slices.Equal(got.Config.Voters, p.Config.Voters) {
		return fmt.Errorf("recovery: the log was written but says something else: configuration %v with voters %v, want that "+
			"of entry %d with %v; keep the directory, which may hold acknowledged writes that the others lack, and use "+
			"another survivor", got.ID, got.Config.Voters, want,
			p.Config.Voters)
	}
	return nil
}
