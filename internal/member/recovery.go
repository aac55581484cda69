package member

import (
	"errors"
	"fmt"
	"slices"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/raft"
	"github.com/quorate/quorate/internal/datadir"
	"github.com/quorate/quorate/internal/storage/wal"
)

// Recovery from quorum loss makes a survivor the only voter, by hand of the operator: no protocol can, because nobody
// knows what the lost members have acknowledged among themselves. Everything that the survivor's log holds is kept and
// becomes committed; one configuration entry after it removes all others for ever:
//
//	before   ... entry n, of term t
//	after    ... entry n | adopted records, and voters {self}, tombstones {all others}, of term t+gap | hard state: commit
//	                     | the next epoch
//
// It is one write to the log, so that a crash leaves the old state or the new one. What it says is a configuration like
// any other: there is no mode that the member starts in.

// termGap is how far the recovery goes beyond the terms that this member knows. The lost members may have gone through
// elections without it: an entry of theirs with the same index and term as one of ours would be taken for it. Nobody
// holds a million elections unnoticed.
const termGap consensus.Term = 1 << 20

// Recovery is what will be written to a survivor's log.
type Recovery struct {
	Config consensus.Config
	Tombs  []consensus.MemberID
	// Undone is the first entry of a change, not known to have committed, that removes this member itself: from there on
	// the log loses its configuration entries and keeps the rest. Zero: there is none.
	Undone consensus.Index
	// Adopted is how many writes are kept that no log has, because the survivor, or a member that was compared, holds them
	// for the fast path. Conflicting is how many others of that kind were given up: of two that conflict at most one was
	// acknowledged, and nobody can know which.
	Adopted, Conflicting int
	// Before is the epoch of the survivor, Epoch the one that the recovery begins.
	Before, Epoch consensus.Epoch

	dropped  []consensus.Member
	identity wal.Identity
	after    consensus.Mark
	reset    *consensus.SnapshotMeta // the log must begin anew after it: a snapshot has put the store ahead
	entries  []consensus.Entry
	hard     consensus.HardState
}

// Errors of planning a recovery.
var (
	// ErrOnlyVoter means that there is nothing to recover.
	ErrOnlyVoter = errors.New("this member is already the only voter of its cluster: there is nothing to recover")
	errNoConfig  = errors.New("this member never learned who its cluster is: it has nothing that could be recovered")
	errBuried    = errors.New("the cluster removed this member before it lost its quorum: recover another survivor")
)

// Recover plans the recovery of s as the only voter. The learners in keep stay; their logs must be part of that of s, as
// Holds tells, or they would keep what is not part of the history any more. Others are further survivors: what they hold
// for the fast path is adopted too.
func (s *Survivor) Recover(keep []consensus.MemberID, others ...*Survivor) (*Recovery, error) {
	self := s.Identity.Member
	switch {
	case len(s.Config.Members) == 0:
		return nil, errNoConfig
	case s.Alone() && (len(s.Config.Learners) == 0 || len(keep) > 0):
		return nil, ErrOnlyVoter
	}
	r := &Recovery{identity: s.Identity, after: s.Last}
	if s.ahead {
		base := s.base
		r.reset = &base
	}
	last, err := s.lastWithSelf(r)
	if err != nil {
		return nil, err
	}
	me, ok := last.Config.Member(self)
	if !ok {
		return nil, fmt.Errorf("this member is not part of the last configuration that it knows (%v): use another survivor",
			last.id)
	}
	me.Promote, me.Cordoned = false, false // somebody must lead, and whoever joins next shall not have to at once
	r.Config = consensus.Config{Voters: []consensus.MemberID{self}, Members: []consensus.Member{me}}
	for _, id := range keep {
		if err := r.keep(&last.Config, id, s.NameOf(id)); err != nil {
			return nil, err
		}
	}
	r.Tombs = s.others(&r.Config)
	r.nextEpoch(s, others)
	r.drops(s)
	adopted, conflicting := s.adopt(s.sameEpoch(others))
	r.Adopted, r.Conflicting = len(adopted), conflicting
	r.write(s, last.id, adopted)
	return r, nil
}

// lastWithSelf returns the last configuration that does not remove this member.
func (s *Survivor) lastWithSelf(r *Recovery) (configChange, error) {
	self := s.Identity.Member
	if s.Removed || (slices.Contains(s.base.Tombs, self) && s.base.Open) {
		return configChange{}, errBuried
	}
	last := configChange{consensus.ConfigChange{Config: s.base.Config}, s.base.ConfigID}
	last.id.Stage = 0
	for _, c := range s.changes {
		if slices.Contains(c.Tombs, self) {
			if c.id.Index <= s.Commit {
				return configChange{}, errBuried
			}
			r.Undone = c.id.Index
			break
		}
		last = c
	}
	return last, nil
}

// keep lets a learner stay.
func (r *Recovery) keep(from *consensus.Config, id consensus.MemberID, name string) error {
	m, ok := from.Member(id)
	if !ok || !from.IsLearner(id) {
		return fmt.Errorf("%s is not a learner: only learners may stay; add it again with an empty data directory", name)
	}
	if at, found := slices.BinarySearch(r.Config.Learners, id); !found {
		r.Config.Learners = slices.Insert(r.Config.Learners, at, id)
		r.Config.Members = append(r.Config.Members, m)
		slices.SortFunc(r.Config.Members, func(a, b consensus.Member) int {
			if a.ID < b.ID {
				return -1
			}
			return 1
		})
	}
	return nil
}

// others returns everybody that the log ever names and c does not hold: a change that was under way may have let members
// in that the last configuration does not show.
func (s *Survivor) others(c *consensus.Config) []consensus.MemberID {
	ids := slices.Concat(s.base.Config.IDs(), s.base.Tombs)
	for i := range s.changes {
		ids = slices.Concat(ids, s.changes[i].Config.IDs(), s.changes[i].Tombs)
	}
	slices.Sort(ids)
	ids = slices.Compact(ids)
	return slices.DeleteFunc(ids, c.Contains)
}

// write makes the entries. Without something to undo or to adopt it is one.
func (r *Recovery) write(s *Survivor, replaces consensus.ConfigID, adopted []consensus.Record) {
	term := s.Term + termGap
	if r.Undone > 0 {
		for _, e := range s.entries[r.Undone-s.base.Mark.Index-1:] {
			e.Term = term
			if e.Kind != consensus.EntryCommand {
				e = consensus.Entry{Index: e.Index, Term: term, Kind: consensus.EntryNoop}
			}
			r.entries = append(r.entries, e)
		}
	}
	index := s.Last.Index
	for _, record := range adopted {
		index++
		r.entries = append(r.entries, consensus.Entry{
			Index: index, Term: term, Kind: consensus.EntryCommand, Proposal: record.Proposal,
			ExactRevision: record.Revision, Payload: record.Payload,
		})
	}
	change := consensus.ConfigChange{
		Protocol: consensus.ProtocolSingle, Replaces: replaces, Config: r.Config, Tombs: r.Tombs,
	}
	index++
	r.entries = append(r.entries, consensus.Entry{
		Index: index, Term: term, Kind: consensus.EntryConfig, Payload: consensus.AppendConfigChange(nil, &change),
	})
	r.hard = consensus.HardState{Term: term, Vote: r.identity.Member, Commit: index}
}

// Covers reports whether everything that other has in its log is part of what r keeps of s, as it is there.
func (r *Recovery) Covers(s, other *Survivor) bool {
	return s.Holds(other) && (r.Undone == 0 || other.Last.Index < r.Undone)
}

// Write does what was planned, and reads the data again to see that a member would start with it. Only the log is written,
// by one append, which is also the epoch; the file that names the dropped members means nothing without it. The
// data must be locked, and not have changed since it was inspected.
func (r *Recovery) Write(options datadir.Options) error {
	log, found, err := wal.Open(options.WAL())
	if err != nil {
		return err
	}
	if last := found.Last(); found.Identity != r.identity || (r.reset == nil && last != r.after) {
		err = fmt.Errorf("member: %s changed while it was looked at: the log ends at %v and not at %v; try again",
			options.Dir, last, r.after)
		return errors.Join(err, log.Close())
	}
	if err = datadir.WriteDropped(options, r.Epoch, r.dropped); err != nil {
		return errors.Join(err, log.Close())
	}
	err = log.Append(wal.Batch{Reset: r.reset, Entries: r.entries, Hard: &r.hard, Epoch: &r.Epoch})
	if err = errors.Join(err, log.Close()); err != nil {
		return fmt.Errorf("member: write the recovery to the log: %w", err)
	}
	return r.verify(options)
}

// verify asks the core what it would start with.
func (r *Recovery) verify(options datadir.Options) error {
	s, err := Inspect(options)
	if err != nil {
		return err
	}
	replica, err := raft.New(raft.Defaults(r.identity.Member), raft.Restored{
		Hard: consensus.HardState{Term: s.Term, Commit: s.Commit}, Base: s.base, Entries: s.entries, Applied: s.Applied.Index,
	})
	if err != nil {
		return err
	}
	got, want := replica.InForce(), r.hard.Commit
	if s.Identity.Epoch != r.Epoch {
		return fmt.Errorf("member: the log was written but is of epoch %v, not %v; keep the directory and use another "+
			"survivor", s.Identity.Epoch, r.Epoch)
	}
	if got.ID.Index != want || !got.Committed || !got.Settled || replica.Status().Removed || s.Removed ||
		!slices.Equal(got.Config.Voters, r.Config.Voters) {
		return fmt.Errorf("member: the log was written but says something else: configuration %v with voters %v, want that "+
			"of entry %d with %v; keep the directory and use another survivor", got.ID, got.Config.Voters, want,
			r.Config.Voters)
	}
	return nil
}
