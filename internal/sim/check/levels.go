package check

import (
	"slices"
	"sort"

	"github.com/quorate/quorate/internal/base/level"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/kv/nextlevel"
)

// levels is the rule of feature levels. No command is applied below its level. The active level rises at most to the level that
// all members of the last configuration before that entry have published, and only if the policy allows it, or an operator
// wants it, or no member ever ran a build without it. While a downgrade is under way the policy is a hold. The former policy
// comes back, and a soak begins anew, by an operator's word, as the level rises, or once all members run the former release.
type levels struct {
	active    level.Level
	published map[consensus.MemberID]level.Level
	releases  map[consensus.MemberID]level.Release // of the builds that were published; those of no release are not in it
	policy    level.Policy
	changed   uint64        // how often the policy changed, or a soak began or ended
	least     level.Level   // ever published; zero: none
	born      level.Level   // that all knew when all had published for the first time
	soaks     level.Level   // zero: none
	seconds   int64         // that it has soaked
	target    level.Release // of the downgrade that is under way; zero: none
	former    level.Policy  // before that downgrade
	past      []leveled     // as it was after each entry that changed it, oldest first
}

// leveled is the state of levels after an entry.
type leveled struct {
	index  consensus.Index
	active level.Level
	rise   level.Rise
}

// rejects reports whether an encoded command changes nothing because it is below its level.
func (l *levels) rejects(payload []byte) bool {
	needs, _ := nextlevel.Needs(payload) // in a world without the next level clients do not change users
	return needs > l.now()
}

func (l *levels) now() level.Level { return max(l.active, level.First) }

// rise is what members must have stored.
func (l *levels) rise() level.Rise {
	return level.Rise{Policy: l.policy, Generation: l.changed, Lowest: l.least, Born: l.born, Level: l.soaks,
		Seconds: l.seconds, Target: l.target, Before: l.former}
}

// before is the configuration that counts for a command: that of the last configuration entry before it.
type before struct {
	config *consensus.Config
	entry  consensus.Index // zero: the first configuration, which is in no entry
}

// apply returns the result of a command about levels.
func (l *levels) apply(at before, c *kv.Command) (about bool, err error) {
	switch {
	case c.Publish != nil:
		l.publish(at.config, c.Publish)
		return true, nil
	case c.LevelPolicy != nil:
		return true, l.setPolicy(at, c.LevelPolicy)
	case c.Soak != nil:
		return true, l.soak(at, c.Soak)
	case c.Raise != nil:
		return true, l.raise(at, c.Raise)
	}
	return false, nil
}

// note keeps the state after an entry, if that changed it.
func (l *levels) note(index consensus.Index) {
	now := leveled{index, l.now(), l.rise()}
	if n := len(l.past); n == 0 || l.past[n-1].active != now.active || l.past[n-1].rise != now.rise {
		l.past = append(l.past, now)
	}
}

// after is the state after an entry, which some member has applied.
func (l *levels) after(index consensus.Index) leveled {
	n := sort.Search(len(l.past), func(i int) bool { return l.past[i].index > index })
	if n == 0 {
		return leveled{active: level.First}
	}
	return l.past[n-1]
}

// Leveled compares the levels of a member that has applied the log up to an index with those of the model.
func (s *Suite) Leveled(member consensus.MemberID, index consensus.Index, active level.Level, rise level.Rise) {
	if int(index) > len(s.machine.outcomes) {
		return // the checker of logs has reported it
	}
	if want := s.machine.levels.after(index); active != want.active || rise != want.rise {
		s.report("state-machine", "member %v has level %d and %+v at index %d, the model %d and %+v", member, active, rise,
			index, want.active, want.rise)
	}
}

// Levels returns the active level, and what decides when it rises, after the longest prefix of the log that any member applied.
func (s *Suite) Levels() (active level.Level, rise level.Rise) {
	return s.machine.levels.now(), s.machine.levels.rise()
}

// Knows returns the level that a member has published last; zero: none.
func (s *Suite) Knows(member consensus.MemberID) level.Level {
	return s.machine.levels.published[member]
}

// lowest is the lowest level that the members have published, zero if one has published none, if the command is of another
// configuration, or if it names a member that has been removed since its proposer looked.
func (l *levels) lowest(at before, of kv.LevelView) level.Level {
	if consensus.Index(of.Config) != at.entry || len(of.IDs) == 0 || of.Generation != l.changed {
		return 0
	}
	members, lowest := at.config.IDs(), ^level.Level(0)
	for _, id := range of.IDs {
		if !slices.Contains(members, consensus.MemberID(id)) {
			return 0
		}
	}
	for _, id := range members {
		lowest = min(lowest, l.published[id])
	}
	return lowest
}

func (l *levels) publish(config *consensus.Config, op *kv.PublishOp) {
	id := consensus.MemberID(op.Member)
	if l.published == nil {
		l.published, l.releases = map[consensus.MemberID]level.Level{}, map[consensus.MemberID]level.Release{}
	}
	l.published[id] = op.Level
	delete(l.releases, id)
	if release, ok := level.ParseRelease(op.Build); ok {
		l.releases[id] = release
	}
	if !slices.Contains(config.IDs(), id) {
		return // it was removed
	}
	if l.least == 0 || op.Level < l.least {
		l.least = op.Level
	}
	if op.Level < l.soaks {
		l.soaks, l.seconds = 0, 0
		l.changed++
	}
}

func (l *levels) setPolicy(at before, op *kv.LevelPolicyOp) error {
	lowest := l.lowest(at, op.Of)
	if op.Of.Generation != l.changed || (op.Initial || op.Returned) && lowest == 0 {
		return kv.ErrBadCommand
	}
	downgrades := l.target != level.Release{}
	switch {
	case op.Returned:
		if !downgrades || !l.returned(at.config) {
			return kv.ErrBadCommand
		}
		l.endDowngrade()
	case op.Initial:
		if l.born == 0 {
			l.born = min(lowest, l.least)
		}
		if l.policy == (level.Policy{}) {
			l.policy = op.Policy
		}
	case op.Target == level.Release{}:
		l.endDowngrade()
		l.policy = op.Policy
	case downgrades, l.policy == level.Policy{}, op.Policy != level.Policy{Kind: level.PolicyHold}:
		return kv.ErrBadCommand
	default:
		l.target, l.former, l.policy = op.Target, l.policy, op.Policy
	}
	l.changed++
	return nil
}

// returned reports whether all members run the release that a downgrade goes back to, or an earlier one.
func (l *levels) returned(config *consensus.Config) bool {
	for _, id := range config.IDs() {
		if release, known := l.releases[id]; !known || release.Compare(l.target) > 0 {
			return false
		}
	}
	return true
}

// endDowngrade ends the downgrade that is under way, if there is one.
func (l *levels) endDowngrade() {
	if l.target != (level.Release{}) {
		l.policy, l.target, l.former = l.former, level.Release{}, level.Policy{}
		l.soaks, l.seconds = 0, 0
	}
}

func (l *levels) soak(at before, op *kv.SoakOp) error {
	if op.Level <= l.now() || l.lowest(at, op.Of) < op.Level {
		return kv.ErrBadCommand
	}
	if l.soaks != op.Level {
		l.soaks, l.seconds = op.Level, 0
		l.changed++
	} else {
		l.seconds = max(l.seconds, op.Seconds)
	}
	return nil
}

func (l *levels) raise(at before, op *kv.RaiseOp) error {
	soaked := l.policy.Kind == level.PolicySoak && l.soaks == op.Level && l.seconds >= l.policy.Seconds
	born := op.Level <= l.born && l.target == level.Release{}
	switch {
	case op.Level <= l.now():
		return nil // the same level again, perhaps with a member that has not published anything yet
	case l.lowest(at, op.Of) < op.Level:
		return kv.ErrBadCommand
	case !op.Finalize && !born && l.policy.Kind != level.PolicyNow && !soaked:
		return kv.ErrBadCommand
	}
	l.active, l.soaks, l.seconds = op.Level, 0, 0
	l.endDowngrade()
	l.changed++
	return nil
}
