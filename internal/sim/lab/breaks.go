package lab

import (
	"fmt"
	"slices"
	"strings"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/raft"
)

// breaks are rules that are switched off on purpose.
type breaks struct {
	raft               raft.Faults
	votesWithoutCommit bool
	offEarly           bool
	selfCounts         bool
	switched           bool // see switched.go
}

// named is the name of a protocol, or of the experiment.
func (b *breaks) named(protocol consensus.Protocol) string {
	if b.switched && protocol == consensus.ProtocolActivate {
		return ProtocolSwitched
	}
	return protocol.String()
}

// Break is a rule that can be switched off.
type Break struct {
	Name, About string
	set         func(*breaks)
}

// Breaks lists them.
func Breaks() []Break {
	return []Break{
		{"change-in-old-term", "a leader changes the configuration before an entry of its own term has committed",
			func(b *breaks) { b.raft.ChangeInOldTerm = true }},
		{"two-changes", "a change may begin while the one before is under way",
			func(b *breaks) { b.raft.TwoChanges = true }},
		{"count-learners", "learners count for commits",
			func(b *breaks) { b.raft.CountLearners = true }},
		{"count-self", "a leader that is no voter counts itself towards the majority of the voters",
			func(b *breaks) { b.selfCounts = true }},
		{"union-of-joint", "a joint configuration decides by a majority of all its voters together",
			func(b *breaks) { b.raft.UnionOfJoint = true }},
		{"direct-switch", "a change of several voters logs the new ones alone: nothing asks majorities of both sets",
			func(b *breaks) { b.raft.DirectSwitch = true }},
		{"leave-early", "a new leader ends a joint change that it finds before an entry of its own term has committed",
			func(b *breaks) { b.raft.LeaveEarly = true }},
		{"incoming-decides", "what is logged in a joint configuration commits by its new voters alone",
			func(b *breaks) { b.raft.IncomingDecides = true }},
		{"verdicts-of-any-config", "members take offers of the fast path, and proposers count verdicts, of any configuration",
			func(b *breaks) { b.raft.Fast.AnyConfig, b.raft.Fast.ProposerMixes = true, true }},
		{ProtocolSwitched, "activate with no entry after it: a majority that has switched is enough; votes prefer who has",
			func(b *breaks) { b.switched, b.raft.NoNotice, b.votesWithoutCommit = true, true, true }},
		{"reuse-config-ids", "configurations are numbered by a counter that an undone change turns back",
			func(b *breaks) { b.raft.ReuseConfigIDs = true }},
		{"commit-old-term", "entries of earlier terms commit by counting",
			func(b *breaks) { b.raft.CommitOldTerm = true }},
		{"votes-without-commit", "votes and their answers do not say what is committed",
			func(b *breaks) { b.votesWithoutCommit = true }},
		{"off-before-settled", "members that leave are switched off when the change is done, not when it is settled",
			func(b *breaks) { b.offEarly = true }},
	}
}

func parseBreaks(names []string) (breaks, error) {
	var b breaks
	for _, name := range names {
		at := slices.IndexFunc(Breaks(), func(b Break) bool { return b.Name == name })
		if at < 0 {
			var known []string
			for _, b := range Breaks() {
				known = append(known, b.Name)
			}
			return b, fmt.Errorf("no rule %q to break: there are %s", name, strings.Join(known, ", "))
		}
		Breaks()[at].set(&b)
	}
	return b, nil
}

// CheckBreak reports whether there is a rule called name.
func CheckBreak(name string) error {
	_, err := parseBreaks([]string{name})
	return err
}

// countSelf gives a leader that is no voter the place of one voter, whom it knows least of: what is on its own disk counts
// as acknowledged by that one. The replica's own switch adds the leader to the voters, and a majority of that is one of
// the configuration before, which loses nothing: the mistake that was made is to count the leader towards the majority
// of the others.
func (b *breaks) countSelf(m *member) {
	if !b.selfCounts || !m.running() || m.status.Role != raft.Leader || m.status.Config.IsVoter(m.id) {
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
