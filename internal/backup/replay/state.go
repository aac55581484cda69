package replay

import (
	"github.com/quorate/quorate/internal/backup"
	"github.com/quorate/quorate/internal/base/env"
	"github.com/quorate/quorate/internal/kv/apply"
	"github.com/quorate/quorate/internal/storage/engine"
	"github.com/quorate/quorate/internal/storage/objects"
)

// Options say where a backup is, and where it is restored to.
type Options struct {
	Store objects.Store
	FS    env.FS
	// Dir is where the store is made. Run removes all that is there first, and what is beside it under its name and ".base" or
	// ".log": copies of the store, which it removes at the end, too.
	Dir string
	// Durable makes the files of the base survive a power loss before Run returns: for a store that is kept.
	Durable    bool
	OpenEngine func(dir string) (engine.Engine, error)
	Apply      apply.Options
	Open       backup.Opener // decrypts; nil: nothing that is encrypted can be read
	Parallel   int           // objects that are read at once; zero: DefaultParallel
	// ObjectBytes bounds the memory in which a manifest or a segment is read: backup.TooLargeError. With more than one of
	// Parallel it is that of each. Zero: what their forms allow.
	ObjectBytes int64
	OneHistory  bool // see history.Search
	// Progress, if set, is told now and then how far a plan is.
	Progress func(Progress)
	// Room, if set, says why there is no room for so many more bytes on the disk of Dir; nil: there is. It is asked for the
	// files of a base before these are downloaded, and not for the log: where it refuses, another base is tried, and the
	// error is a backup.RoomError. Copies of the store are removed where it refuses: without those a base is downloaded
	// again for each segment that somebody made up.
	Room func(bytes int64) error
	// Damaged, if set, is told of each object that was found to be missing, damaged or of another history: another plan is
	// tried.
	Damaged func(error)
}

// DefaultParallel is the number of objects that are read at once.
const DefaultParallel = 4

// Progress is how far a plan is.
type Progress struct {
	Bytes, OfBytes int64 // of files, then of segments, as they are in the place
	Entries        int   // applied
}

// State is a restored state. Its machine takes no more entries: the caller reads it, and calls Close.
type State struct {
	Machine *apply.Machine
	Plan    *backup.Plan
	At      backup.Head // what was restored; its time is that of the last entry, or of the base
	Entries int         // that were applied after the base
	// Branches counts segments that do not name the one before them: another member went on there.
	Branches int
	Damaged  []error

	store engine.Engine
	named backup.Point // what the name of the base, or of the segment that was applied last, calls the state after it
}

// rest returns the segments of a plan that come after a state to which whole segments led; false if the plan does not go
// through it.
func (s *State) rest(p *backup.Plan) (segments []backup.Stored, through bool) {
	if s.Plan.Base.Hash != p.Base.Hash {
		return nil, false
	}
	if s.named == p.Base.Point {
		return p.Segments, true
	}
	for i := range p.Segments {
		if p.Segments[i].End == s.named {
			return p.Segments[i+1:], true
		}
	}
	return nil, false
}

// Close closes the store. The directory is the caller's.
func (s *State) Close() error { return s.store.Close() }
