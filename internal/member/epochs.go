package member

import (
	"context"
	"encoding/json"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/epoch"
	"github.com/quorate/quorate/internal/identity"
)

// newEpochs makes the watch over other epochs of the cluster (package epoch) for this member.
func newEpochs(m *Member) *epoch.Monitor {
	own := m.claim()
	own.Life = consensus.Life{}
	return epoch.New(epoch.Options{
		Own: own, ElectionTimeout: m.electionTimeout(), Clock: m.options.Clock, Logger: m.logger,
		Unconnected: m.unconnected, Dropped: m.data.Dropped, Greet: m.greetURL,
	})
}

// unconnected returns the other members of the configuration that no connection leads to, with their names.
func (m *Member) unconnected() []consensus.Member {
	var peers []consensus.Member
	for _, peer := range m.config.now().Members {
		if _, connected := m.peers.transport.ConnectedSince(peer.ID); peer.ID != m.ID() && !connected {
			peer.Name = m.config.nameOf(peer.ID)
			peers = append(peers, peer)
		}
	}
	return peers
}

func (m *Member) greetURL(ctx context.Context, url string) (g identity.Greeting, err error) {
	body, err := m.peers.transport.CallURL(ctx, url, MethodGreet, nil)
	if err != nil {
		return g, err
	}
	return g, json.Unmarshal(body, &g)
}

// claim is what this member says of itself.
func (m *Member) claim() identity.Claim {
	own := &m.data.Identity
	return identity.Claim{Cluster: own.Cluster, Epoch: own.Epoch, Member: own.Member, Life: m.data.Life()}
}

// Superseded returns an *epoch.SupersededError while this member serves nothing because the cluster was recovered
// without it.
func (m *Member) Superseded() error { return m.epochs.Superseded() }

// ForeignEpochs returns for each member of another epoch of the cluster that is about what to do about it.
func (m *Member) ForeignEpochs() []string { return m.epochs.Alarms() }
