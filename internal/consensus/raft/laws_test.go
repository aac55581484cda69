package raft_test

import (
	"fmt"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/raft"
)

// laws checks, after every Step, the laws that no schedule of faults may break (Raft paper, figure 3).
type laws struct {
	leaders   map[consensus.Term]memberID
	committed map[consensus.Index]entry    // applied by some member
	highest   consensus.Index              // committed, as any member knows it
	known     map[consensus.Index]position // committed, as any member knows it, applied or not
	checked   map[memberID]consensus.Index
	asked     map[[2]uint64]consensus.Index
	retired   map[memberID]bool // members whose removal for ever some member knows
	settled   map[consensus.ConfigID]bool
	aborted   map[consensus.ConfigID]bool // undone by an abort that committed
	protocols map[consensus.Protocol]int  // changes settled
	broken    string
	reads     int
}

func newLaws() *laws {
	return &laws{
		leaders: map[consensus.Term]memberID{}, committed: map[consensus.Index]entry{}, asked: map[[2]uint64]consensus.Index{},
		retired: map[memberID]bool{}, settled: map[consensus.ConfigID]bool{}, aborted: map[consensus.ConfigID]bool{},
		protocols: map[consensus.Protocol]int{}, known: map[consensus.Index]position{}, checked: map[memberID]consensus.Index{},
	}
}

func (l *laws) breach(format string, args ...any) {
	if l.broken == "" {
		l.broken = fmt.Sprintf(format, args...)
	}
}

func (l *laws) check(n *node, out *raft.Output) {
	s := n.replica.Status()
	for _, e := range out.Events {
		if e, ok := e.(raft.BecameLeader); ok {
			if other, ok := l.leaders[e.Term]; ok && other != n.id {
				l.breach("election safety: %v and %v lead term %d", other, n.id, e.Term)
			}
			l.leaders[e.Term] = n.id
			l.complete(n, out, e.Term)
		}
	}
	for i := range out.Apply {
		e := out.Apply[i]
		if before, ok := l.committed[e.Index]; ok && (before.Term != e.Term || string(before.Payload) != string(e.Payload)) {
			l.breach("state machine safety: %v applies %v where %v was applied", n.id, e.Position(), before.Position())
		}
		l.committed[e.Index] = e
		if e.Index != n.handed+consensus.Index(i)+1 {
			l.breach("%v applies %d after %d", n.id, e.Index, n.handed)
		}
	}
	for _, read := range out.Reads {
		l.reads++
		if floor := l.asked[[2]uint64{uint64(n.id), read.ID}]; read.Index < floor {
			l.breach("linearizable read: %v may serve read %d at %d, %d had committed before it was asked", n.id, read.ID, read.Index, floor)
		}
	}
	for _, list := range [][]message{out.Send, out.SendAfter} {
		for i := range list {
			then := s
			if list[i].Kind == consensus.MsgPreVoteReply {
				then.Commit = 0 // it may have waited for the disk: perhaps nothing was committed when it was made
			}
			if why := unfit(&list[i], &then); why != "" {
				l.breach("%s: %s", why, describe(&list[i]))
			}
		}
	}
	l.highest = max(l.highest, s.Commit)
}

// unfit returns an error in the receiver or the content of a message from a sender with that status; empty if there is none.
func unfit(m *message, s *raft.Status) string {
	ofElections := m.Kind == consensus.MsgPreVote || m.Kind == consensus.MsgPreVoteReply || m.Kind == consensus.MsgVote ||
		m.Kind == consensus.MsgVoteReply && !m.Reject // one of an earlier term learns the term alone
	switch {
	case m.To == consensus.NoMember:
		return "a message to nobody"
	case m.To == m.From && m.Kind != consensus.MsgRecord: // a proposer is a voter, too
		return "a message to its sender"
	case m.Kind == consensus.MsgAcknowledged && m.To == s.Leader:
		return "the leader is told as a proposer what it is told as the leader"
	case m.Kind == consensus.MsgVoteReply && m.Reject && len(m.Records) > 0:
		return "a refused vote bears records, as if the voter accepted none any more"
	case ofElections && m.Committed.Index == 0 && s.Commit > 0:
		return "a vote does not tell what is known to be committed"
	}
	return ""
}

// watch lets the laws see every Step of c.
func (l *laws) watch(c *cluster) { c.check, c.done = l.check, l.membership }

// belowCommit checks that any two members have the same committed entries, applied or not, and that a leader counts only those
// entries as held by others that they really have of its log.
func (l *laws) belowCommit(n *node, s *raft.Status) {
	from := l.checked[n.id]
	if from > s.Commit {
		from = 0 // in a crash it forgot its commit index
	}
	for index := max(from, n.logBase) + 1; index <= s.Commit; index++ {
		own, ok := n.at(index)
		if before, seen := l.known[index]; ok && seen && before != own {
			l.breach("one committed log: %v has %v where %v has committed", n.id, own, before)
		}
		if ok {
			l.known[index] = own
		}
	}
	l.checked[n.id] = s.Commit
	for i := range s.Progress {
		p := &s.Progress[i]
		for _, other := range n.c.nodes {
			if other.id != p.ID || other.replica == nil || other.replica.Term() != s.Term {
				continue
			}
			mine, has := n.at(p.Match)
			theirs, too := other.at(p.Match)
			// After a restart the log may begin after a store that is ahead of it, and the disk learns that only with the next
			// Step.
			begins := max(other.logBase, other.replica.Base().Position.Index)
			if has && begins < p.Match && (!too || mine != theirs) {
				l.breach("one log per leader: %v counts %v at term %d as held by %v, which has %v", n.id, mine, s.Term, p.ID, theirs)
			}
		}
	}
}

// at returns the position of the entry at index, if the log holds it.
func (n *node) at(index consensus.Index) (position, bool) {
	if index <= n.logBase || index > n.last() {
		return position{}, false
	}
	return n.log[index-n.logBase-1].Position(), true
}

// complete checks leader completeness: the log of a new leader holds everything committed in earlier terms.
func (l *laws) complete(n *node, out *raft.Output, term consensus.Term) {
	for index, e := range l.committed {
		if index <= n.logBase || e.Term >= term {
			continue
		}
		at := int(index - n.logBase - 1)
		var got position
		if at < len(n.log) {
			got = n.log[at].Position()
		}
		for i := range out.Entries {
			if out.Entries[i].Index == index {
				got = out.Entries[i].Position()
			}
		}
		if got != e.Position() {
			l.breach("leader completeness: %v leads term %d with %v instead of %v", n.id, term, got, e.Position())
		}
	}
}

// matching checks the log matching property on all pairs of logs.
func (l *laws) matching(c *cluster) {
	for i, a := range c.nodes {
		for _, b := range c.nodes[i+1:] {
			same := false
			for at := min(a.last(), b.last()); at > max(a.logBase, b.logBase); at-- {
				x, y := a.log[at-a.logBase-1], b.log[at-b.logBase-1]
				if same && (x.Term != y.Term || string(x.Payload) != string(y.Payload)) {
					l.breach("log matching: %v and %v differ at %d and agree later:\n%s\n%s", a.id, b.id, at, a.drawn(), b.drawn())
				}
				same = same || x.Term == y.Term
			}
		}
	}
}

func (n *node) last() consensus.Index { return n.logBase + consensus.Index(len(n.log)) }
