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
	born      level.Level // that all knew when all had published for the first time
	soaks     level.Level // zero: none
	seconds   int64       // that it has soaked
}

// rejects reports whether an encoded command changes nothing because it is below its level.
func (l *levels) rejects(payload []byte) bool {
	needs, _ := nextlevel.Needs(payload) // in a world without the next level clients do not change users
	return needs > max(l.active, level.First)
}

// apply returns the result of a command about levels, with the configuration before it.
func (l *levels) apply(config *consensus.Config, c *kv.Command) (about bool, err error) {
	switch {
	case c.Publish != nil:
		l.publish(config, c.Publish)
		return true, nil
	case c.LevelPolicy != nil:
		if !c.LevelPolicy.Initial || l.policy == (level.Policy{}) {
			l.policy = c.LevelPolicy.Policy
		}
		return true, nil
	case c.Soak != nil:
		return true, l.soak(config, c.Soak)
	case c.Raise != nil:
		return true, l.raise(config, c.Raise)
	}
	return false, nil
}

// lowest is the lowest level that the members have published, zero if one has published none.
func (l *levels) lowest(config *consensus.Config) level.Level {
	lowest := ^level.Level(0)
	for _, id := range config.IDs() {
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
	if op.Level < l.soaks {
		l.soaks, l.seconds = 0, 0
	}
	if l.born == 0 {
		l.born = l.lowest(config)
	}
}

func (l *levels) soak(config *consensus.Config, op *kv.SoakOp) error {
	if op.Level <= max(l.active, level.First) || l.lowest(config) < op.Level {
		return kv.ErrBadCommand
	}
	if l.soaks != op.Level {
		l.soaks, l.seconds = op.Level, 0
	} else {
		l.seconds = max(l.seconds, op.Seconds)
	}
	return nil
}

func (l *levels) raise(config *consensus.Config, op *kv.RaiseOp) error {
	soaked := l.policy.Kind == level.PolicySoak && l.soaks == op.Level && l.seconds >= l.policy.Seconds
	switch {
	case op.Level <= max(l.active, level.First):
		return nil // the same level again, perhaps with a member that has not published anything yet
	case l.lowest(config) < op.Level:
		return kv.ErrBadCommand
	case !op.Finalize && op.Level > l.born && l.policy.Kind != level.PolicyNow && !soaked:
		return kv.ErrBadCommand
	}
	l.active, l.soaks, l.seconds = max(l.active, op.Level), 0, 0
	return nil
}
