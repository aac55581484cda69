package member

import (
	"context"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/identity"
	"github.com/quorate/quorate/internal/membership"
)

// peers leads to the other members.
type peers struct{ transport link }

// connected reports whether there is a connection to a member.
func (p *peers) connected(id consensus.MemberID) bool {
	_, connected := p.transport.ConnectedSince(id)
	return connected
}

// troubleStates are how member list shows a member that is refused for its data directory.
var troubleStates = map[identity.Reason]string{
	identity.LostDisk:     membership.LostItsDisk,
	identity.RolledBack:   membership.RolledBack,
	identity.OtherHistory: membership.OtherHistory,
}

// showCertificate tells whether who calls shows a certificate by which it may be a member at these peer URLs.
func (p *peers) showCertificate(ctx context.Context, urls []string) bool {
	return p.transport.ShowsCertificateFor(ctx, urls)
}

// wantCertificates tells whether peers must show certificates here, so that one is proof of being a peer.
func (p *peers) wantCertificates() bool { return p.transport.WantsCertificates() }

// otherHistories says who answers at the addresses of members and is of another history, and what to do.
func (p *peers) otherHistories() []string { return p.transport.OtherHistories() }

// strays says which processes without data run in the name of members that are connected from elsewhere.
func (p *peers) strays() []string { return p.transport.Strays() }

// trouble says in two words why a member is refused here; empty: it is not.
func (p *peers) trouble(id consensus.MemberID) string {
	trouble, found := p.transport.Trouble(id)
	if !found {
		return ""
	}
	return troubleStates[trouble.Reason]
}
