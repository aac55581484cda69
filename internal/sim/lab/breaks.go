package lab

import (
	"fmt"
	"slices"
	"strings"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/raft"
	"github.com/quorate/quorate/internal/consensus/rules"
)

// breaks are the rules that are switched off on purpose.
type breaks struct {
	dropped  rules.Set
	switched bool // see switched.go
}

// named returns the name of a protocol, or of the experiment.
func (b *breaks) named(protocol consensus.Protocol) string {
	if b.switched && protocol == consensus.ProtocolActivate {
		return ProtocolSwitched
	}
	return protocol.String()
}

// core returns the rules that a member's replica drops: countSelf does the rest.
func (b *breaks) core() rules.Set {
	dropped := b.dropped
	dropped[rules.CountSelf] = false
	return dropped
}

// Break is a rule that can be switched off, or several that are broken together.
type Break struct {
	Name     string
	Demands  string // the sentence of the rule
	drops    []rules.Rule
	switched bool
}

// Drops reports whether a rule is among those that are switched off.
func (b *Break) Drops(rule rules.Rule) bool { return slices.Contains(b.drops, rule) }

// Breaks lists the rules that can be switched off.
func Breaks() []Break {
	var all []Break
	for _, rule := range []rules.Rule{
		rules.ChangeInOldTerm, rules.TwoChanges, rules.CountLearners, rules.CountSelf, rules.UnionOfJoint, rules.DirectSwitch,
		rules.LeaveEarly, rules.IncomingDecides, rules.ReuseConfigIDs, rules.CommitOldTerm, rules.VotesWithoutCommit,
		rules.OffBeforeSettled,
	} {
		all = append(all, Break{Name: rule.String(), Demands: rules.Demands(rule), drops: []rules.Rule{rule}})
	}
	switched := []rules.Rule{rules.NoNotice, rules.VotesWithoutCommit}
	return append(all,
		Break{Name: "verdicts-of-any-config", Demands: rules.Demands(rules.AnyConfig),
			drops: []rules.Rule{rules.AnyConfig, rules.ProposerMixes}},
		Break{Name: ProtocolSwitched, Demands: rules.Demands(switched...), drops: switched, switched: true})
}

func findBreak(name string) (Break, error) {
	var known []string
	for _, b := range Breaks() {
		if b.Name == name {
			return b, nil
		}
		known = append(known, b.Name)
	}
	return Break{}, fmt.Errorf("no rule %q to break: there are %s", name, strings.Join(known, ", "))
}

func parseBreaks(names []string) (breaks, error) {
	var broken breaks
	for _, name := range names {
		b, err := findBreak(name)
		if err != nil {
			return broken, err
		}
		for _, rule := range b.drops {
			broken.dropped[rule] = true
		}
		broken.switched = broken.switched || b.switched
	}
	return broken, nil
}

// CheckBreak returns an error if there is no rule called name.
func CheckBreak(name string) error {
	_, err := parseBreaks([]string{name})
	return err
}

// countSelf gives a leader that is no voter the place of one voter, the one whose log it knows least of: the entries on the
// leader's own disk count as acknowledged by that voter. The replica's own switch adds the leader to the voters, and a majority
// of that is one of the configuration before, which loses nothing: the historical mistake was to count the leader towards the
// majority of the others.
func (b *breaks) countSelf(m *member) {
	if !b.dropped[rules.CountSelf] || !m.running() || m.status.Role != raft.Leader || m.status.Config.IsVoter(m.id) {
		return
	}
	if m.standIn == consensus.NoMember {
		var match consensus.Index
		for _, p := range m.status.Progress {
			if slices.Contains(m.status.Config.Voters, p.ID) && (m.standIn == consensus.NoMember || p.Match <= match) {
				m.standIn, match = p.ID, p.Match
			}
		}
	}
	last, ok := m.at(m.status.Durable)
	if !ok {
		return
	}
	m.step(raft.Receive{Message: message{
		Kind: consensus.MsgAppendReply, From: m.standIn, To: m.id, Term: m.status.Term, Match: last.Position(),
	}})
}
