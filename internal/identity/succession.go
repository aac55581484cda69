package identity

import (
	"fmt"
	"slices"

	"github.com/quorate/quorate/internal/consensus"
)

// EpochState is what a member may do beside members of other epochs of its cluster.
type EpochState uint8

// The states.
const (
	// Looking: it has no quorum and has not looked yet whether the cluster was recovered without it. It waits.
	Looking EpochState = 0
	// Sound: no member of another epoch is about.
	Sound EpochState = 1
	// Contested: members of other epochs are about. It goes on and raises an alarm: it has a quorum, or no epoch is newer.
	Contested EpochState = 2
	// Superseded: the cluster was recovered without it, and it has no quorum. It keeps its data and serves nothing: it does
	// not campaign, grants no vote, and acknowledges nothing, until it hears a leader of its own epoch.
	Superseded EpochState = 3
)

// Mute reports whether a member in this state takes no part in elections.
func (s EpochState) Mute() bool { return s == Looking || s == Superseded }

// Admit keeps of messages what a member in this state may receive: while it is mute, what a leader of its own epoch says.
func (s EpochState) Admit(messages []consensus.Message) []consensus.Message {
	if !s.Mute() {
		return messages
	}
	return slices.DeleteFunc(messages, func(m consensus.Message) bool {
		switch m.Kind {
		case consensus.MsgAppend, consensus.MsgHeartbeat, consensus.MsgSnapshotOffer, consensus.MsgRemoved:
			return false
		}
		return true
	})
}

// Foreign is a member of another epoch that was met.
type Foreign struct {
	Claim
	Name string // as far as it is known
	age  int    // rounds since it was met last
	// outlived says that a leader of the own epoch was heard after it was met: a quorum lives on beside it.
	outlived bool
}

const (
	// maxForeign bounds how many are remembered.
	maxForeign = 64
	// foreignRounds is for how many rounds one is remembered that is not met again, unless it is of a newer epoch that no
	// quorum of the own one has outlived.
	foreignRounds = 4
)

// Succession decides what a member may do once it meets members of other epochs. It belongs to one goroutine at a time.
// Claims of other clusters, of the own epoch, and of processes that are no members yet must not be given to it, nor any that
// is not believed: see Evidence.
//
// A newer epoch ends a member that meets it without a quorum. One that was met while a quorum lived, and that this quorum has
// outlived, says nothing about a later loss of the quorum: it may have been stopped for ever meanwhile. So the member looks
// again before it campaigns, and only whom it meets then counts.
type Succession struct {
	Own   consensus.Epoch
	Rules Rules

	looking bool // a round of questions is under way that counts
	looked  bool
	foreign []Foreign // the first that was met comes first
}

// Meet notes a member of another epoch, and reports whether it was not known yet.
func (s *Succession) Meet(f Foreign) bool {
	f.age, f.outlived = 0, false
	for i := range s.foreign {
		if known := &s.foreign[i]; known.Member == f.Member && known.Epoch == f.Epoch && known.Storage == f.Storage {
			if f.Name == "" {
				f.Name = known.Name
			}
			*known = f
			return false
		}
	}
	if len(s.foreign) >= maxForeign {
		return false
	}
	s.foreign = append(s.foreign, f)
	return true
}

// LearnName notes what a member is called, also one that was met before that was known.
func (s *Succession) LearnName(member consensus.MemberID, name string) {
	for i := range s.foreign {
		if s.foreign[i].Member == member {
			s.foreign[i].Name = name
		}
	}
}

// Led notes that a leader of the own epoch is heard, so that a quorum has outlived all that were met. It reports whether there
// are any of a newer epoch among them: then a round of questions counts only if it begins after the last leader was heard.
func (s *Succession) Led() (doubted bool) {
	if s.Rules.RememberGhosts {
		return false
	}
	for i := range s.foreign {
		s.foreign[i].outlived = true
		doubted = doubted || s.foreign[i].Epoch.Number > s.Own.Number
	}
	if doubted {
		s.looking, s.looked = false, false
	}
	return doubted
}

// Look notes that all peers are about to be asked.
func (s *Succession) Look() { s.looking = true }

// Looked notes that all peers were asked, whether they answered or not, and ages what was met before.
func (s *Succession) Looked() {
	s.looked, s.looking = s.looked || s.looking, false
	for i := range s.foreign {
		s.foreign[i].age++
	}
	s.foreign = slices.DeleteFunc(s.foreign, func(f Foreign) bool {
		return f.age > foreignRounds && (f.Epoch.Number <= s.Own.Number || f.outlived)
	})
}

// Foreign returns those of other epochs that are about.
func (s *Succession) Foreign() []Foreign { return slices.Clone(s.foreign) }

// State returns what the member may do. quorate says that it has a quorum: it leads, or hears a leader, or did so a moment
// ago.
func (s *Succession) State(quorate bool) EpochState {
	newer := s.newer(!s.Rules.ObeyNewer) >= 0 && !s.Rules.ServeSuperseded
	switch {
	case newer && (!quorate || s.Rules.ObeyNewer):
		return Superseded
	case !quorate && !s.looked:
		return Looking
	case len(s.foreign) > 0:
		return Contested
	}
	return Sound
}

// newer finds the newest epoch above the own one, unless alive is set and a quorum of the own one has outlived it. Equal
// numbers are rivals: neither follows the other.
func (s *Succession) newer(alive bool) int {
	newest := -1
	for i := range s.foreign {
		f := &s.foreign[i]
		if f.Epoch.Number <= s.Own.Number || alive && f.outlived {
			continue
		}
		if newest < 0 || f.Epoch.Compare(s.foreign[newest].Epoch) > 0 {
			newest = i
		}
	}
	return newest
}

func (f *Foreign) String() string {
	name := f.Name
	if name == "" {
		name = "a member"
	}
	return fmt.Sprintf("%s (%v) of epoch %v at %s", name, f.Member, f.Epoch, f.address())
}

// Alarm says who of another epoch is about, and what to do. It is for a member that goes on.
func (s *Succession) Alarm(f *Foreign) string {
	switch {
	case f.Epoch.Number == s.Own.Number:
		return fmt.Sprintf("%v is of this cluster, but was recovered apart from this member, whose epoch is %v: these are "+
			"two clusters now, with clients of one. Each may hold acknowledged writes that the other lacks: empty and delete "+
			"no data directory. Compare what clients wrote to both, decide which one to keep, stop the other, move its "+
			"directories aside, keep them, and add its machines to the one that is kept, with other, empty "+
			"directories", f, s.Own)
	case f.Epoch.Number > s.Own.Number:
		return fmt.Sprintf("%v was recovered without this member, which is of epoch %v and goes on while it has a quorum: "+
			"these are two clusters now, and clients may write to either. Compare what clients wrote to both, keep all data "+
			"directories as they are, and stop for ever the side that is not to be kept, as a rule the recovered one; "+
			"then `quorate member reset` its member here", f, s.Own)
	}
	return fmt.Sprintf("%v is of the time before this cluster was recovered, with epoch %v, and was dropped by that. It may "+
		"hold acknowledged writes that this side lacks, and serve with others of its time: empty and delete no data "+
		"directory. Compare first: `quorate status` at its endpoints, and once it is stopped `quorate recover --data-dir DIR "+
		"--dry-run` with its directory. If its side is the one to keep, as a rule the one that served clients last, stop "+
		"this side for ever and start that one again, with the directories that it has. Only if this side is the one to "+
		"keep, stop that member, move its directory aside, keep it, and start the process with another, empty one and "+
		"--join", f, s.Own)
}

// WaysOut says why a superseded member serves nothing, and what can be done; empty if it is none.
func (s *Succession) WaysOut() string {
	at := s.newer(true)
	if at < 0 {
		return ""
	}
	f := &s.foreign[at]
	return fmt.Sprintf("the cluster was recovered without this member: it is of epoch %v, has no quorum, and met %v. It "+
		"serves nothing and keeps its data. Empty no data directory before it is decided which side to keep, as a rule the "+
		"one that served clients last. If that is the recovered one, move this directory aside, keep it, and start this "+
		"machine with another, empty one and --join %s. If it is this side, as after a recovery by mistake, stop %s for ever "+
		"and start the members of this side again, with the directories that they have; if they are no quorum, run `quorate "+
		"recover` on one of them", s.Own,
		f, f.address(), f.Member)
}
