package member

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/cockroachdb/errors/oserror"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/raft"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/kv/apply"
	"github.com/quorate/quorate/internal/storage/snapshot"
	"github.com/quorate/quorate/internal/storage/wal"
)

// Survivor is what the data of a stopped member says of its cluster.
type Survivor struct {
	Dir      string
	Identity wal.Identity
	Written  time.Time      // when its log was written last
	Term     consensus.Term // the highest it has seen
	Last     consensus.Mark // of its log
	Commit   consensus.Index
	Applied  consensus.Mark // by the store on disk; what follows is applied at the next start
	Revision kv.Revision    // at Applied
	// Config is the last configuration in the log, committed or not.
	Config   consensus.Config
	ConfigID consensus.ConfigID
	Protocol consensus.Protocol
	Removed  bool // this member knows that it was removed

	nonce   func() uint64 // draws the id of a recovery; nil: the system's generator
	base    consensus.SnapshotMeta
	ahead   bool // base is that of the store: the log has not heard of the snapshot that put it there
	entries []consensus.Entry
	changes []configChange             // in the log, oldest first
	records []consensus.Record         // it holds them for proposers, and their fate is not known
	logged  map[consensus.Attempt]bool // in entries; slow ones have revision zero
	names   map[consensus.MemberID]string
}

// configChange is a configuration entry and its place.
type configChange struct {
	consensus.ConfigChange
	id consensus.ConfigID
}

// Inspect reads the data of a member that does not run, and changes nothing. Options.OpenEngine may open the store for
// reading only.
func Inspect(options DataOptions) (*Survivor, error) {
	if err := refuseForeign(options); err != nil {
		return nil, err
	}
	log, written, err := wal.Inspect(options.wal())
	if errors.Is(err, wal.ErrNoLog) {
		err = fmt.Errorf("member: %s is the data of a member whose log is not in %s: correct --wal-dir: %w", options.Dir,
			options.walDir(), err)
	}
	if err != nil {
		return nil, err
	}
	s := &Survivor{
		Dir: options.Dir, Identity: log.Identity, Written: written, Term: log.Hard.Term, base: log.Base,
		entries: log.Entries, names: map[consensus.MemberID]string{}, nonce: options.Nonce,
	}
	if err := s.readStore(options, &log); err != nil {
		return nil, err
	}
	held, err := restoredRecords(log.Witness)
	if err != nil {
		return nil, fmt.Errorf("member: the log in %s: %w", options.walDir(), err)
	}
	if s.ahead { // the snapshot took the place of a log that may have entries which this member answered for
		held = append(held, raft.AnsweredRecords(&log.Base, log.Entries, s.Identity.Member)...)
	}
	s.readRecords(held)
	s.Last = lastMark(s.base.Mark, s.entries)
	s.Term = max(s.Term, s.Last.Term)
	s.Commit = max(min(log.Hard.Commit, s.Last.Index), s.Applied.Index)
	s.readConfigs()
	return s, nil
}

// refuseForeign refuses what is no member's data.
func refuseForeign(options DataOptions) error {
	exists, err := Exists(options)
	if err != nil {
		return err
	}
	if !exists {
		return fmt.Errorf("%s holds no member's data: give the --data-dir that the member was started with", options.Dir)
	}
	return nil
}

// readStore reads what the log does not say. A store that a snapshot has put ahead of the log replaces it, as in Open.
func (s *Survivor) readStore(options DataOptions, log *wal.Recovered) (err error) {
	current, err := snapshot.Load(options.FS, options.Dir)
	if err != nil {
		return err
	}
	dir := options.storeDir(current.Generation)
	if _, err := options.FS.Stat(dir); oserror.IsNotExist(err) {
		return fmt.Errorf("member: %w: %s is missing", ErrDamaged, dir)
	}
	store, err := options.OpenEngine(dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	machine, err := apply.Open(store, options.Apply)
	if err != nil {
		return fmt.Errorf("member: read %s: %w", dir, err)
	}
	s.Applied, s.Revision = machine.Applied(), machine.Store().Revision()
	_, s.Removed = machine.Removed(s.Identity.Member)
	boots, err := readBoots(&options)
	if err == nil {
		err = checkParts(&options, &boots, log, part{"the store in", dir, machine.Owner()})
	}
	switch {
	case err != nil:
		return err
	case holds(log, s.Applied):
	case s.Applied.Index >= log.Base.Mark.Index && current.Installed == s.Applied:
		s.base, s.entries, s.ahead = machine.SnapshotMeta(), nil, true
	default:
		return fmt.Errorf("member: the store in %s has applied %v but the log does not hold that entry: the two do not "+
			"belong together; use another survivor", options.Dir, s.Applied)
	}
	config, _ := machine.Config()
	for i := range config.Members {
		id := config.Members[i].ID
		if published, known := machine.Published(id); known {
			s.names[id] = published.Name
		}
	}
	return nil
}

// readConfigs finds the last configuration, and the names that members have published. A change that follows another
// one proves that this had committed.
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
		change, _, err := consensus.DecodeConfigChange(e.Payload)
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

// Alone reports whether this member is the only voter already, and needs nobody to elect it.
func (s *Survivor) Alone() bool {
	return !s.Config.IsJoint() && slices.Equal(s.Config.Voters, []consensus.MemberID{s.Identity.Member}) &&
		(s.Protocol != consensus.ProtocolApply || s.ConfigID.Index <= s.Commit)
}

// Holds reports whether the log of other is a part of this one: what other has ever applied is here too.
func (s *Survivor) Holds(other *Survivor) bool {
	return holds(&wal.Recovered{Base: s.base, Entries: s.entries}, other.Last)
}

// Behind reports whether other may hold acknowledged writes that this member lacks: later terms win, then longer logs, as
// in an election.
func (s *Survivor) Behind(other *Survivor) bool { return s.Last.Before(other.Last) }

// NameOf returns how people call a member: its name, or its id if it has none.
func (s *Survivor) NameOf(id consensus.MemberID) string {
	if name := s.names[id]; name != "" {
		return name
	}
	if m, ok := s.Config.Member(id); ok && m.Name != "" {
		return m.Name
	}
	return id.String()
}

// Find returns the member of the last configuration that is called so, by name or id.
func (s *Survivor) Find(name string) (consensus.MemberID, error) {
	var known []string
	for _, id := range s.Config.IDs() {
		if s.NameOf(id) == name || id.String() == strings.ToLower(name) {
			return id, nil
		}
		known = append(known, s.NameOf(id))
	}
	return consensus.NoMember, fmt.Errorf("no member is called %q: the members are %s", name, strings.Join(known, ", "))
}
