package node

import (
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/raft"
	"github.com/quorate/quorate/internal/member/groupcommit"
)

// gathering is what the leader has not written yet, because more may come. Between two steps it is fewer proposals than make a
// batch in package groupcommit, each message at least one of them.
type gathering struct {
	gate      groupcommit.Gate
	held      []raft.Input    // what others propose, in order
	proposals int             // in held
	shut      bool            // something waits, here or in the table of proposals
	last      consensus.Index // in the log
}

// take keeps a message with so many proposals, unless there are none, or it is not one to the leader.
func (g *gathering) take(received raft.Receive, proposals int) bool {
	if received.Message.Kind != consensus.MsgPropose || proposals == 0 {
		return false
	}
	g.held = append(g.held, received)
	g.proposals += proposals
	return true
}

// wrote notes what is in the log.
func (g *gathering) wrote(entries []consensus.Entry) {
	if len(entries) > 0 {
		g.last = entries[len(entries)-1].Index
	}
}

// running returns how many entries of the log are not known to be committed.
func (g *gathering) running(commit consensus.Index) int { return int(g.last - min(g.last, commit)) }
