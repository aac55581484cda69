package membership

import (
	"encoding/binary"
	"hash/fnv"

	"github.com/quorate/quorate/internal/consensus"
)

// Mode says who acts on what Care finds.
type Mode string

// The modes. The zero value is off, too.
const (
	ModeOff     Mode = "off"
	ModeSuggest Mode = "suggest" // people do
	ModeAuto    Mode = "auto"    // the leader does
)

// Policy is what Care may do, and when.
type Policy struct {
	Mode Mode
	// DeadAfterMS is how long a voter must have been silent to be taken for dead.
	DeadAfterMS int64
	// Voters is how many there should be; zero: as many as there are. It only ever makes Care add some.
	Voters int
	// StableMS is how long a learner must have been fit to vote without a break before it is trusted with a vote, and how
	// long a dead member that came back holds everything up.
	StableMS int64
	// MaxPerHour bounds the jobs that Care starts, whichever member leads; zero is no bound.
	MaxPerHour int
}

// On reports whether there is anything to do for Care.
func (p *Policy) On() bool { return p.Mode == ModeSuggest || p.Mode == ModeAuto }

// Advice is what Care found. The zero value says that all is well. Its sentences do not change while the situation stays the
// same, so that each is worth one line in a diary.
type Advice struct {
	Problem string // what is wrong
	Remedy  string // what would cure it; empty if Spec is nil
	Held    string // why nothing is done; empty if Spec is not nil
	Spec    *Spec  // what would be done
	Job     JobID  // under which Spec is to be started: every leader that wants the same uses the same
	// Cancel is a job of Care that is not needed any more, because the member that it replaces came back; else zero.
	Cancel JobID
}

// String joins the sentences; it is empty if all is well.
func (a Advice) String() string {
	switch {
	case a.Problem == "":
		return ""
	case a.Held != "":
		return a.Problem + "; nothing is done: " + a.Held
	}
	return a.Problem + "; " + a.Remedy
}

const (
	hourMS = 60 * 60 * 1000
	// careAttempts is how often Care tries the same in one configuration.
	careAttempts = 8
)

// careID derives the id of a job from what it is for, so that two leaders that see the same make one job of it. Going is
// the member that is replaced, NoMember if voters are only added.
func careID(config consensus.ConfigID, going consensus.MemberID, attempt int) JobID {
	var row [33]byte
	binary.BigEndian.PutUint64(row[0:], uint64(config.Index))
	binary.BigEndian.PutUint64(row[8:], uint64(config.Term))
	binary.BigEndian.PutUint64(row[16:], uint64(going))
	binary.BigEndian.PutUint64(row[24:], uint64(attempt))
	row[32] = config.Stage
	hash := fnv.New64a()
	_, _ = hash.Write(row[:]) // a hash never fails
	return JobID(hash.Sum64()>>1 | 1)
}

// ByCare reports whether Care started the job: no other caller uses its ids. They can be told as long as the job expects what
// it was planned for; it expects something else once a job that it waits for has changed the configuration. So it is noted,
// too.
func ByCare(j *Job) bool {
	if j.Care {
		return true
	}
	for attempt := range careAttempts {
		if j.ID == careID(j.Spec.Expected, j.Spec.replaced(), attempt) {
			return true
		}
	}
	return false
}

// replaced is the member that goes, if it is one.
func (s *Spec) replaced() consensus.MemberID {
	if len(s.Remove) != 1 {
		return consensus.NoMember
	}
	return s.Remove[0]
}
