package keep

import (
	"time"

	"github.com/quorate/quorate/internal/backup"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/kv"
)

// State is what is known of a base.
type State uint8

// States of a base.
const (
	// Whole means that its manifest was read, and all files are there.
	Whole State = iota
	// Lacking means that its manifest was read, and files are missing.
	Lacking
	// Unreadable means that its manifest is damaged, or of a later form: nobody knows which files it names.
	Unreadable
	// Strange means that no member reported it, though members reported bases before it: somebody else put it, or a member that
	// ended before it could report.
	Strange
	// Late means that the place took it long after its time, and no member is known to have made it.
	Late
)

// Base is a base at a place.
type Base struct {
	backup.BaseName
	Taken int64 // when the place took it, by the place's clock, in milliseconds since 1970; zero: not known
	State State
}

// Input is what a place has of a cluster. Now is the time of the one who asks, in milliseconds since 1970.
type Input struct {
	Rule   Rule
	Bases  []Base
	Firsts map[uint64]consensus.Index // the first entry in segments, by epoch
	Now    int64
	// Newest is the entry of the newest base that this member made or continued, in the epoch Epoch; zero: none is known.
	Newest consensus.Index
	Epoch  uint64
	// Known are the bases that members reported last; empty: not known. Without it, whatever lies there is believed.
	Known []kv.BackupBase
}

// Fate is what becomes of a base.
type Fate struct {
	Base
	Kept  bool
	Log   bool     // with the segments after it
	Why   []string // it is kept
	Until int64    // it is kept, if bases are made as until now; zero: not known
}

// Times that a plan goes by.
const (
	// Slack is kept beyond the window: clocks of members differ, and a restore that has begun goes on.
	Slack = time.Hour
	// ahead is how far a clock may be ahead of another one.
	ahead = time.Hour
	// stepFloor is the least of what the time between two bases may count for. It counts for a quarter of the window at most: a
	// clock that jumps makes nothing old, nor does a backup that was stopped for long.
	stepFloor = 24 * time.Hour
	// late is how long after its time a place takes a base that was made then.
	late = 48 * time.Hour
)
