package node

import (
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/member/proposals"
)

// ProposeFor queues a command under the id that a native client gave it; it leaves with the next Step. done is told once, by
// the goroutine that applies, what came of it: the result of the first entry of that id, kv.ErrSessionUnknown in the result if
// this attempt did nothing because the session is not open, or an error of this package if the member cannot tell. The
// command is repeated until then, or until AbandonFor.
func (n *Node) ProposeFor(id consensus.ProposalID, command *kv.Command, done proposals.Completion) error {
	return n.proposals.AddFor(id, command.Append(nil), done, false)
}

// ExpectFor is ProposeFor for a proposal that reaches the core by a message of the client: it is repeated only if it stays
// without an end.
func (n *Node) ExpectFor(id consensus.ProposalID, command *kv.Command, done proposals.Completion) error {
	return n.proposals.AddFor(id, command.Append(nil), done, true)
}

// RefusedFor takes what the core says to a client of proposals that ExpectFor knows.
func (n *Node) RefusedFor(refusals []consensus.Refusal) { n.proposals.Refuse(refusals) }

// AbandonFor ends the wait of done for a proposal of a client. A proposal that was sent may still happen.
func (n *Node) AbandonFor(id consensus.ProposalID, done proposals.Completion) {
	n.proposals.AbandonFor(id, done)
}
