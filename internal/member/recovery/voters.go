package recovery

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/quorum"
	"github.com/quorate/quorate/internal/identity"
	"github.com/quorate/quorate/internal/transport"
)

// voterTimeout is how long FindVoters waits for an answer.
const voterTimeout = 2 * time.Second

// Finder looks for a member at one peer URL. The error says more about what is not the member.
type Finder func(ctx context.Context, id consensus.MemberID, url string) (transport.Presence, error)

// FinderOver returns the Finder of a process that serves no member: it dials peer URLs with these options.
func (s *Survivor) FinderOver(o transport.Options) Finder {
	return func(ctx context.Context, id consensus.MemberID, url string) (transport.Presence, error) {
		sought := identity.Sought{Cluster: s.Identity.Cluster, Member: id, Storage: s.storageOf(id)}
		return transport.Find(ctx, o, sought, url)
	}
}

// storageOf returns the data directory to which a member is bound by all configurations that may be in force here.
func (s *Survivor) storageOf(id consensus.MemberID) (storage consensus.StorageID) {
	for i, config := range s.possible() {
		m, known := config.Member(id)
		if !known || i > 0 && m.Storage != storage {
			return consensus.NoStorage
		}
		storage = m.Storage
	}
	return storage
}

// Voter is what was found at the peer URLs of another voter.
type Voter struct {
	ID       consensus.MemberID
	Name     string
	URL      string // where it was found, or all that were tried
	Presence transport.Presence
	Err      error // why nothing is known, if Presence is Unsure or NoPeerPort
}

// FindVoters looks for the other voters of all configurations that may be in force, all at once. The operator says that those
// in lost are gone: they count as silent unless they answer.
//
// Only the answer of a voter proves anything. That an address refuses connections, or that others answer there, or a process
// that was started as the voter and has no data, does not say that the voter is down: it may have moved, with a majority, while
// this member was.
func (s *Survivor) FindVoters(ctx context.Context, find Finder, lost []consensus.MemberID) []Voter {
	ctx, cancel := context.WithTimeout(ctx, voterTimeout)
	defer cancel()
	var found []Voter
	members := s.Dialled()
	for i := range members {
		m := &members[i]
		if s.mayVote(m.ID) && m.ID != s.Identity.Member {
			found = append(found, Voter{ID: m.ID, Name: s.NameOf(m.ID), URL: strings.Join(m.PeerURLs, ",")})
		}
	}
	var asking sync.WaitGroup
	for i := range found {
		asking.Go(func() {
			f := &found[i]
			f.look(ctx, find)
			if slices.Contains(lost, f.ID) && f.Presence != transport.Present && f.Presence != transport.Empty {
				*f = Voter{ID: f.ID, Name: f.Name, URL: f.URL}
			}
		})
	}
	asking.Wait()
	return found
}

// look tries all URLs of one member. An answer at one of them decides. Unsure at one of them outweighs silence at
// others.
func (f *Voter) look(ctx context.Context, find Finder) {
	var empty string // where a process without data answers
	for url := range strings.SplitSeq(f.URL, ",") {
		if url == "" {
			continue
		}
		presence, err := find(ctx, f.ID, url)
		switch {
		case presence == transport.Present:
			f.URL, f.Presence, f.Err = url, presence, nil
			return
		case presence == transport.Unsure || presence == transport.NoPeerPort || f.Presence == transport.Silent,
			presence == transport.Empty && f.Presence == transport.Another:
			f.Presence, f.Err = presence, err
			if presence == transport.Empty {
				empty = url
			}
		}
	}
	if f.Presence == transport.Empty {
		f.URL = empty
	}
}

// QuorumError says that the cluster need not be recovered, or not yet, because other voters run.
type QuorumError struct {
	Present []Voter // that answer, or may
	Enough  bool    // for a quorum, together with the survivor
}

func (e *QuorumError) Error() string {
	var parts []string
	for _, f := range e.Present {
		switch {
		case errors.Is(f.Err, transport.ErrUnreachable):
			why := strings.TrimPrefix(f.Err.Error(), transport.ErrUnreachable.Error()+": ")
			parts = append(parts, fmt.Sprintf("%s cannot be reached at %s (%s), so it may be alive and serve others",
				f.Name, f.URL, why))
			continue
		case f.Presence == transport.Unsure || f.Presence == transport.NoPeerPort:
			parts = append(parts, fmt.Sprintf("something listens at %s, the address of %s, and does not say who it is (%v)",
				f.URL, f.Name, f.Err))
			continue
		}
		parts = append(parts, fmt.Sprintf("%s answers at %s", f.Name, f.URL))
	}
	text := strings.Join(parts, "; ")
	if e.Enough {
		text += ": with this one that is a quorum, and nothing need be lost"
	}
	return text
}

// Unsure reports whether one of those found does not say who it is, or cannot be reached.
func (e *QuorumError) Unsure() bool {
	return slices.ContainsFunc(e.Present, func(f Voter) bool { return f.Presence != transport.Present })
}

// EmptyError says that processes without data run where voters are looked for. They are no voters, and the voters may run
// elsewhere.
type EmptyError struct{ Found []Voter }

func (e *EmptyError) Error() string {
	var parts, names []string
	for _, f := range e.Found {
		parts, names = append(parts, identity.EmptyAt(f.Name, f.URL)), append(names, f.Name)
	}
	return fmt.Sprintf("%s: they do not vote, and do not show where %s with their data are", strings.Join(parts, "; "),
		strings.Join(names, " and "))
}

// CheckEmpty returns an *EmptyError if a process without data was found where a voter is looked for.
func CheckEmpty(found []Voter) error {
	var e EmptyError
	for _, f := range found {
		if f.Presence == transport.Empty {
			e.Found = append(e.Found, f)
		}
	}
	if len(e.Found) == 0 {
		return nil
	}
	return &e
}

// UnnamedError says that the operator has not named all members that a recovery drops.
type UnnamedError struct{ Names []string }

func (e *UnnamedError) Error() string {
	return fmt.Sprintf("%s may serve without this member, at addresses that it does not know: that nobody answers at those "+
		"that it knows does not show that they are gone", strings.Join(e.Names, ", "))
}

// CheckNames returns an *UnnamedError unless the operator has said of each member that the plan drops that it is gone for ever.
func (s *Survivor) CheckNames(p *Plan, lost []consensus.MemberID) error {
	var e UnnamedError
	known := s.Known()
	for i := range known {
		if id := known[i].ID; slices.Contains(p.Tombs, id) && !slices.Contains(lost, id) {
			e.Names = append(e.Names, s.NameOf(id))
		}
	}
	if len(e.Names) == 0 {
		return nil
	}
	slices.Sort(e.Names)
	return &e
}

// CheckVoters returns a *QuorumError if any of those found may run.
func (s *Survivor) CheckVoters(found []Voter) error {
	var e QuorumError
	votes := []consensus.MemberID{s.Identity.Member}
	for _, f := range found {
		if f.Presence == transport.Present || f.Presence == transport.Unsure || f.Presence == transport.NoPeerPort {
			e.Present = append(e.Present, f)
		}
		if f.Presence == transport.Present {
			votes = append(votes, f.ID)
		}
	}
	if len(e.Present) == 0 {
		return nil
	}
	e.Enough = s.Quorum(votes)
	return &e
}

// Quorum reports whether votes are enough to elect a leader.
func (s *Survivor) Quorum(votes []consensus.MemberID) bool {
	now := s.inForce()
	return majority(now.Voters, votes) && majority(now.Outgoing, votes)
}

// majority reports whether votes hold a majority of set, or set is empty.
func majority(set, votes []consensus.MemberID) bool {
	n := 0
	for _, id := range set {
		if slices.Contains(votes, id) {
			n++
		}
	}
	return len(set) == 0 || n >= quorum.Majority(len(set))
}
