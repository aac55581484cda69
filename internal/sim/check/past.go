package check

import (
	"slices"
	"time"

	"github.com/quorate/quorate/internal/base/level"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/kv"
)

// past checks what stores say of by whom and when revisions were written: the author of each is the user and the session of its
// command, and moments come after what they have seen. Revisions below the second feature level have no author.
type past struct {
	by      map[kv.Revision]kv.Author
	since   map[kv.Revision]time.Duration // when the first member applied it
	moments kv.Moments                    // all that were noted
	told    map[kv.MomentOp]time.Duration // when the clock of a moment was read
}

func newPast() past {
	return past{by: map[kv.Revision]kv.Author{}, since: map[kv.Revision]time.Duration{},
		told: map[kv.MomentOp]time.Duration{}}
}

// wrote notes that a command made a revision.
func (p *past) wrote(s *Suite, e *consensus.Entry, command *kv.Command, rev kv.Revision) {
	p.since[rev] = s.Now()
	if s.machine.levels.now() < level.Second {
		return
	}
	session := e.Proposal.Session
	p.by[rev] = kv.Author{Member: uint64(session.Member), Client: session.OfClient(), User: command.By.User,
		Expired: command.LeaseRevoke != nil && command.LeaseRevoke.Term != 0}
}

// note is the rule of moments.
func (p *past) note(s *Suite, op *kv.MomentOp, now kv.Revision) error {
	if op.Seen < 1 || op.Seen > now {
		return kv.ErrBadCommand
	}
	read, told := p.told[*op]
	if since, known := p.since[op.Seen]; !told || known && since > read {
		s.report("moment", "a moment has seen revision %d, which no member had at %v, when its clock was read (told: %t)",
			op.Seen, read, told)
	}
	if n := len(p.moments); n > 0 && op.Seen <= p.moments[n-1].Seen {
		return nil
	}
	p.moments = append(p.moments, kv.Moment{Time: op.Time, Member: op.Member, Seen: op.Seen, Noted: now})
	return nil
}

// Told records that a leader is about to propose a moment, by its clock as it was at a time.
func (s *Suite) Told(op *kv.MomentOp, at time.Duration) { s.machine.past.told[*op] = at }

// Written is a version of a key in the store of a member.
type Written struct {
	Revision kv.Revision
	By       *kv.Author // nil: the store does not know
}

// Authored compares the authors of versions in the store of a member, which is compacted at a revision, with their commands.
func (s *Suite) Authored(member consensus.MemberID, key string, compacted kv.Revision, versions []Written) {
	for _, v := range versions {
		want, known := s.machine.past.by[v.Revision]
		if v.Revision < compacted {
			known = false
		}
		if known != (v.By != nil) || known && *v.By != want {
			s.report("author", "member %v says that %s was written at revision %d by %+v, not by %+v (%t)", member, key,
				v.Revision, v.By, want, known)
			return
		}
	}
}

// Timed compares the moments of a member that has applied the log up to an index, and is compacted at a revision.
func (s *Suite) Timed(member consensus.MemberID, index consensus.Index, compacted kv.Revision, got kv.Moments) {
	if int(index) != len(s.machine.outcomes) || compacted != max(s.machine.model.Compacted, 0) {
		return
	}
	want := s.machine.past.moments
	for len(want) > 1 && want[1].Noted < compacted {
		want = want[1:]
	}
	if !slices.Equal(got, want) {
		s.report("moment", "member %v has the moments %v at index %d, not %v", member, got, index, want)
	}
}

// Moments returns how many moments were noted.
func (s *Suite) Moments() int { return len(s.machine.past.moments) }
