package member

import (
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/transport"
)

// peers leads to the other members. Start sets the transport, which is given this member's handler when it is made: so
// nothing that a handler calls before Start may use it.
type peers struct{ transport *transport.Transport }

// connected reports whether there is a connection to a member.
func (p *peers) connected(id consensus.MemberID) bool {
	_, connected := p.transport.ConnectedSince(id)
	return connected
}
