package member

import (
	"context"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/identity"
	"github.com/quorate/quorate/internal/membership"
)

// peers are the connections to the other members.
type peers struct{ transport link }

// connected reports whether there is a connection to a member.
func (p *peers) connected(id consensus.MemberID) bool {
	_, connected := p.transport.ConnectedSince(id)
	return connected
}

// troubleStates are the texts that member list shows for a member whose data directory is refused.
var troubleStates = map[identity.Reason]string{
	identity.LostDisk:     membership.LostItsDisk,
	identity.RolledBack:   membership.RolledBack,
	identity.OtherHistory: membership.OtherHistory,
}

// showCertificate reports whether the caller shows a certificate that allows a member at these peer URLs.
func (p *peers) showCertificate(ctx context.Context, urls []string) bool {
	return p.transport.ShowsCertificateFor(ctx, urls)
}

// wantCertificates reports whether peers must show certificates here, so that a certificate proves a peer.
func (p *peers) wantCertificates() bool { return p.transport.WantsCertificates() }

// otherHistories returns one text, with advice, for each process of another history that answers at a member's address.
func (p *peers) otherHistories() []string { return p.transport.OtherHistories() }

// strays returns one text for each process without data that runs under the id of a member that is connected from elsewhere.
func (p *peers) strays() []string { return p.transport.Strays() }

// trouble says in two words why this member refuses another one; empty: it does not.
func (p *peers) trouble(id consensus.MemberID) string {
	trouble, found := p.transport.Trouble(id)
	if !found {
		return ""
	}
	return troubleStates[trouble.Reason]
}
