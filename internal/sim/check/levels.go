package check

import (
	"github.com/quorate/quorate/internal/base/level"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/kv/nextlevel"
)

// levels is the rule of feature levels: no command is applied below its level, and the active level rises at most to the level
// that all members of the last configuration before that entry have published.
type levels struct {
	active    level.Level
	published map[consensus.MemberID]level.Level
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
		if l.published == nil {
			l.published = map[consensus.MemberID]level.Level{}
		}
		l.published[consensus.MemberID(c.Publish.Member)] = c.Publish.Level
		return true, nil
	case c.Raise == nil:
		return false, nil
	case c.Raise.Level <= max(l.active, level.First):
		return true, nil // the same level again, perhaps with a member that has not published anything yet
	}
	for _, id := range config.IDs() {
		if l.published[id] < c.Raise.Level {
			return true, kv.ErrBadCommand
		}
	}
	l.active = max(l.active, c.Raise.Level)
	return true, nil
}
