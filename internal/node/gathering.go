package node

import (
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

// take keeps a message with so many proposals.
func (g *gathering) take(received raft.Receive, proposals int) {
	g.held = append(g.held, received)
	g.proposals += proposals
}

// wrote notes what is in the log.
func (g *gathering) wrote(entries []consensus.Entry) {
	if len(entries) > 0 {
		g.last = entries[len(entries)-1].Index
	}
}

// running returns how many entries of the log nobody knows to be committed.
func (g *gathering) running(commit consensus.Index) int { return int(g.last - min(g.last, commit)) }
