package model

import (
	"math/bits"

	"github.com/quorate/quorate/internal/consensus/quorum"
	"github.com/quorate/quorate/internal/consensus/rules"
)

// Config is a set of voters, or two while joint, and learners.
type Config struct{ Old, New, Learners uint8 }

func (c Config) voters() uint8 { return c.Old | c.New }

func (c Config) joint() bool { return c.New != 0 }

func Count(set uint8) int { return bits.OnesCount8(set) }

// electorate gives the configuration in force on a log, and tells which members form a quorum.
type electorate struct {
	rules   rules.Set
	configs []Config
}

// Config returns the configuration in force on a log, as an index into the scenario, and its id.
func (m electorate) Config(l *journal) (at int8, id configID) {
	changes := int8(0)
	for i := range l.N {
		if e := &l.E[i]; e.Kind == ConfigEntry {
			at, id = e.Proposal, configID{i + 1, e.Term}
			changes++
		}
	}
	if m.rules[rules.ReuseConfigIDs] {
		id = configID{changes, 0}
	}
	return at, id
}

// changing reports whether a configuration entry of the log is not applied yet.
func changing(x *member) bool {
	for i := x.Applied; i < x.Log.N; i++ {
		if x.Log.E[i].Kind == ConfigEntry {
			return true
		}
	}
	return false
}

// stable reports whether the member's configuration is applied and not joint.
func (m electorate) stable(x *member) bool {
	at, _ := m.Config(&x.Log)
	return !changing(x) && !m.configs[at].joint()
}

func (m electorate) voter(x *member, i int8) bool {
	at, _ := m.Config(&x.Log)
	return Has(m.configs[at].voters(), i)
}

func majority(set, in uint8) bool { return Count(in&set) >= quorum.Majority(Count(set)) }

// Quorum reports whether in holds a majority of every set of voters.
func (m electorate) Quorum(at int8, in uint8) bool {
	c := m.configs[at]
	if !c.joint() {
		return majority(c.Old, in)
	}
	return majority(c.New, in) && (m.rules[rules.JointElectsInNew] || majority(c.Old, in))
}

// super reports whether in holds a superquorum of every set of voters.
func (m electorate) super(at int8, in uint8) bool {
	c := m.configs[at]
	enough := func(set uint8) bool {
		need := quorum.Super(Count(set))
		if m.rules[rules.SuperquorumLess] {
			need--
		}
		if m.rules[rules.ProposerCountsLearners] {
			return Count(in&(set|c.Learners)) >= need
		}
		return Count(in&set) >= need
	}
	if !c.joint() {
		return enough(c.Old)
	}
	return enough(c.New) && (m.rules[rules.JointDecidesInNew] || enough(c.Old))
}

// recoverable reports whether the voters in in, out of those that voted, are enough to recover a record.
func (m electorate) recoverable(c Config, in uint8) bool {
	enough := func(set uint8) bool {
		need := quorum.Recovery(Count(set))
		if m.rules[rules.RecoverMore] {
			need++
		}
		if m.rules[rules.RecoverLess] {
			need--
		}
		return Count(in&set) >= need
	}
	switch {
	case in == 0:
		return false
	case !c.joint():
		return enough(c.Old)
	case m.rules[rules.RecoverInEither]:
		return enough(c.Old) || enough(c.New)
	case m.rules[rules.RecoverInNew]:
		return enough(c.New)
	}
	return enough(c.Old) && enough(c.New)
}
