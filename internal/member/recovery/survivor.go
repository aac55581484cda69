package recovery

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/member/datadir"
	"github.com/quorate/quorate/internal/storage/wal"
)

// Survivor is what the data of a stopped member says of its cluster.
type Survivor struct {
	Dir      string
	Identity wal.Identity
	Written  time.Time          // when its log was written last
	Term     consensus.Term     // the highest it has seen
	Last     consensus.Position // of its log
	Commit   consensus.Index
	Applied  consensus.Position // by the store on disk; what follows is applied at the next start
	Revision kv.Revision        // at Applied
	// Config is the last configuration in the log, committed or not.
	Config   consensus.Config
	ConfigID consensus.ConfigID
	Protocol consensus.Protocol
	// Tombstones are all members that were removed for ever, as the store on disk knows.
	Tombstones []consensus.MemberID
	// Told is where the operator has said that members are.
	Told []datadir.Address

	nonce   func() uint64 // draws the id of a recovery; nil: the system's generator
	base    consensus.SnapshotMeta
	ahead   bool // base is that of the store: a snapshot has put it ahead of the log
	entries []consensus.Entry
	changes []configChange             // in the log, oldest first
	records []consensus.Record         // of the fast path, held for proposers; they may have been decided or not
	logged  map[consensus.Attempt]bool // in entries; those of the slow path have revision zero
	names   map[consensus.MemberID]string
}

// configChange is a configuration entry and its place.
type configChange struct {
	consensus.ConfigChange
	id consensus.ConfigID
}

// Inspect reads the data of a member that does not run, and changes nothing.
func Inspect(options datadir.Options) (*Survivor, error) {
	c, err := datadir.Inspect(options)
	if err != nil {
		return nil, err
	}
	s := &Survivor{
		Dir: options.Dir, Identity: c.Log.Identity, Written: c.Written, Term: c.Log.Hard.Term, Last: c.Log.Last(),
		Applied: c.Applied, Revision: c.Revision, Tombstones: c.Tombstones,
		names: c.Names, nonce: options.Nonce,
		base: c.Log.Base, entries: c.Log.Entries, ahead: c.StoreAhead,
	}
	if s.Told, err = datadir.ReadAddresses(options); err != nil {
		return nil, err
	}
	s.readRecords(c.Records)
	s.Term = max(s.Term, s.Last.Term)
	s.Commit = max(min(c.Log.Hard.Commit, s.Last.Index), s.Applied.Index)
	s.readConfigs()
	return s, nil
}

// readConfigs finds the last configuration, and the names that members have published. A change that follows another
// one proves that the other had committed.
func (s *Survivor) readConfigs() {
	s.Config, s.ConfigID, s.Protocol = s.base.Config, s.base.ConfigID, s.base.Protocol
	s.ConfigID.Stage = 0
	for i := range s.entries {
		e := &s.entries[i]
		if e.Kind == consensus.EntryCommand {
			if command, err := kv.DecodeCommand(e.Payload); err == nil && command.Publish != nil {
				s.names[consensus.MemberID(command.Publish.Member)] = command.Publish.Name
			}
		}
		if e.Kind != consensus.EntryConfig {
			continue
		}
		change, err := consensus.DecodeConfigChange(e.Payload)
		if err != nil {
			continue // it changes nothing, as in the core
		}
		if !change.Abort {
			s.Commit = max(s.Commit, s.ConfigID.Index)
		}
		s.ConfigID = consensus.ConfigID{Index: e.Index, Term: e.Term}
		s.Config, s.Protocol = change.Config, change.Protocol
		s.changes = append(s.changes, configChange{change, s.ConfigID})
	}
}

// Alone reports whether this member is the only voter already, so that it elects itself.
func (s *Survivor) Alone() bool {
	now := s.inForce()
	return !now.IsJoint() && slices.Equal(now.Voters, []consensus.MemberID{s.Identity.Member})
}

// Holds reports whether the log of other is a part of this one: what other has ever applied is here too.
func (s *Survivor) Holds(other *Survivor) bool {
	log := wal.Recovered{Base: s.base, Entries: s.entries}
	return log.Holds(other.Last)
}

// Behind reports whether other may hold acknowledged writes that this member lacks: later terms win, then longer logs,
// as in an election.
func (s *Survivor) Behind(other *Survivor) bool { return s.Last.Before(other.Last) }

// NameOf returns the name of a member, or its id if it has none.
func (s *Survivor) NameOf(id consensus.MemberID) string {
	if name := s.names[id]; name != "" {
		return name
	}
	known := s.Known()
	at := slices.IndexFunc(known, func(m consensus.Member) bool { return m.ID == id })
	if at >= 0 && known[at].Name != "" {
		return known[at].Name
	}
	return id.String()
}

// Dialled returns the members that are Known with all URLs at which they may be as their peer URLs.
func (s *Survivor) Dialled() []consensus.Member {
	return datadir.Dialled(&consensus.Config{Members: s.Known()}, s.ConfigID, s.Told)
}

// possible returns the configurations that may be in force here, the last one first. Under protocol apply that is not in force
// before it has committed, and a later leader may take back one that has not, under any protocol.
func (s *Survivor) possible() []consensus.Config {
	all := []consensus.Config{s.Config}
	if len(s.changes) == 0 || s.ConfigID.Index <= s.Commit {
		return all
	}
	for i := range slices.Backward(s.changes[:len(s.changes)-1]) {
		if all = append(all, s.changes[i].Config); s.changes[i].id.Index <= s.Commit {
			return all
		}
	}
	return append(all, s.base.Config)
}

// inForce returns the configuration that this member would start with.
func (s *Survivor) inForce() consensus.Config {
	all := s.possible()
	if s.Protocol == consensus.ProtocolApply && len(all) > 1 {
		return all[1] // a change follows only one that has committed
	}
	return all[0]
}

// Known returns the members of all configurations that may be in force here, with the URLs of the last one that has them: those
// of the last configuration in the log, then those of earlier ones.
func (s *Survivor) Known() []consensus.Member {
	var all []consensus.Member
	for _, config := range s.possible() {
		for _, m := range config.Members {
			if !slices.ContainsFunc(all, func(known consensus.Member) bool { return known.ID == m.ID }) {
				all = append(all, m)
			}
		}
	}
	return all
}

// mayVote reports whether a member is a voter of a configuration that may be in force here.
func (s *Survivor) mayVote(id consensus.MemberID) bool {
	return slices.ContainsFunc(s.possible(), func(config consensus.Config) bool { return config.IsVoter(id) })
}

// FindAny is Find, and takes the id of a member that no configuration here has: one that was added while this one was away.
func (s *Survivor) FindAny(name string) (consensus.MemberID, error) {
	id, err := s.Find(name)
	if err == nil {
		return id, nil
	}
	number, parsed := strconv.ParseUint(name, 16, 64)
	if parsed != nil || number == uint64(consensus.NoMember) || len(name) < minID {
		return consensus.NoMember, fmt.Errorf("%w; a member that the data here do not have is named by its id, as `quorate "+
			"member list` prints it", err)
	}
	if id = consensus.MemberID(number); s.removed(id) {
		return consensus.NoMember, fmt.Errorf("member %v was removed for ever", id)
	}
	return id, nil
}

// knows reports whether a configuration that may be in force here has a member.
func (s *Survivor) knows(id consensus.MemberID) bool {
	return slices.ContainsFunc(s.Known(), func(m consensus.Member) bool { return m.ID == id })
}

// Removed reports whether this member knows that it was removed.
func (s *Survivor) Removed() bool { return slices.Contains(s.Tombstones, s.Identity.Member) }

// removed reports whether a member was removed for ever: its tombstone is in the store, or only earlier configurations of the
// log have it.
func (s *Survivor) removed(id consensus.MemberID) bool {
	had := func(c configChange) bool { return c.Config.Contains(id) }
	return slices.Contains(s.Tombstones, id) ||
		!s.knows(id) && (s.base.Config.Contains(id) || slices.ContainsFunc(s.changes, had))
}

// minID is how many digits the id of a member has at least that is taken for one: a word may be made of the same letters.
const minID = 8

// Find returns the member of the configurations that may be in force that has this name or id.
func (s *Survivor) Find(name string) (consensus.MemberID, error) {
	var names []string
	known := s.Known()
	for i := range known {
		id := known[i].ID
		if s.NameOf(id) == name || id.String() == strings.ToLower(name) {
			return id, nil
		}
		names = append(names, s.NameOf(id))
	}
	return consensus.NoMember, fmt.Errorf("no member is called %q: the members are %s", name, strings.Join(names, ", "))
}
