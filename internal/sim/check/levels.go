package check

import (
	"slices"

	"github.com/quorate/quorate/internal/base/level"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/kv/nextlevel"
)

// levels is the rule of feature levels. No command is applied below its level. The active level rises at most to the level that
// all members of the last configuration before that entry have published, and only if the policy allows it, or an operator
// wants it, or no member ever ran a build without it.
type levels struct {
	active    level.Level
	published map[consensus.MemberID]level.Level
	policy    level.Policy
	changed   uint64      // how often the policy changed, or a soak began or ended
	least     level.Level // ever published; zero: none
	born      level.Level // that all knew when all had published for the first time
	soaks     level.Level // zero: none
	seconds   int64       // that it has soaked
}

// rejects reports whether an encoded command changes nothing because it is below its level.
func (l *levels) rejects(payload []byte) bool {
	needs, _ := nextlevel.Needs(payload) // in a world without the next level clients do not change users
	return needs > max(l.active, level.First)
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

// lowest is the lowest level that the members have published, zero if one has published none, or if the command is of another
// configuration.
func (l *levels) lowest(at before, of kv.LevelView) level.Level {
	if consensus.Index(of.Config) != at.entry || len(of.IDs) == 0 || of.Generation != l.changed {
		return 0
	}
	lowest := ^level.Level(0)
	for _, id := range at.config.IDs() {
		lowest = min(lowest, l.published[id])
	}
	return lowest
}

func (l *levels) publish(config *consensus.Config, op *kv.PublishOp) {
	id := consensus.MemberID(op.Member)
	if l.published == nil {
		l.published = map[consensus.MemberID]level.Level{}
	}
	l.published[id] = op.Level
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
	if op.Of.Generation != l.changed || op.Initial && lowest == 0 {
		return kv.ErrBadCommand
	}
	l.changed++
	if op.Initial && l.born == 0 {
		l.born = min(lowest, l.least)
	}
	if !op.Initial || l.policy == (level.Policy{}) {
		l.policy = op.Policy
	}
	return nil
}

func (l *levels) soak(at before, op *kv.SoakOp) error {
	if op.Level <= max(l.active, level.First) || l.lowest(at, op.Of) < op.Level {
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
	switch {
	case op.Level <= max(l.active, level.First):
		return nil // the same level again, perhaps with a member that has not published anything yet
	case l.lowest(at, op.Of) < op.Level:
		return kv.ErrBadCommand
	case !op.Finalize && op.Level > l.born && l.policy.Kind != level.PolicyNow && !soaked:
		return kv.ErrBadCommand
	}
	l.active, l.soaks, l.seconds = max(l.active, op.Level), 0, 0
	l.changed++
	return nil
}
