package node

import (
	"time"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/raft"
	"github.com/quorate/quorate/internal/groupcommit"
)

// gathering is what the leader has not written yet, because more may come.
type gathering struct {
	gate      groupcommit.Gate
	held      []raft.Input    // what others propose, in order
	proposals int             // in held
	shut      bool            // something waits, here or in the table of proposals
	last      consensus.Index // in the log
}

// take keeps a message if it proposes something.
func (g *gathering) take(received raft.Receive) bool {
	if received.Message.Kind != consensus.MsgPropose {
		return false
	}
	g.held = append(g.held, received)
	g.proposals += len(received.Message.Proposals)
	return true
}

// wrote notes what is in the log.
func (g *gathering) wrote(entries []consensus.Entry) {
	if len(entries) > 0 {
		g.last = entries[len(entries)-1].Index
	}
}

// running returns how many entries of the log nobody knows to be committed.
func (g *gathering) running(commit consensus.Index) int { return int(g.last - min(g.last, commit)) }

// gathers reports whether proposals may have to wait here. Elsewhere they leave at once: the leader gathers for all.
func (n *Node) gathers() bool { return n.gathering.gate.Holds() && n.leader == n.options.Raft.ID }

// gather gives the core what others have proposed, unless more is waited for, and reports whether the proposals of this member
// may go, too.
func (n *Node) gather(now time.Time) bool {
	g := &n.gathering
	if n.gathers() {
		waiting := g.proposals + n.proposals.Unsent()
		g.shut = waiting > 0 && !g.gate.Pass(now, waiting, g.running(n.replica.Commit()))
		if g.shut {
			return false
		}
	}
	n.inputs = append(n.inputs, g.held...)
	clear(g.held)
	g.held, g.proposals, g.shut = g.held[:0], 0, false
	return true
}

// Next returns when Step has something to do that waits for its time; false if nothing does.
func (n *Node) Next() (time.Time, bool) {
	at, waits := n.scheduler.Next()
	if due := n.gathering.gate.Due(); n.gathering.shut && (!waits || due.Before(at)) {
		return due, true
	}
	return at, waits
}

// Gathering reports whether proposals wait here for more of them.
func (n *Node) Gathering() bool { return n.gathering.shut }
