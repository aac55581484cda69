package member

import (
	"context"
	"encoding/json"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/identity"
	"github.com/quorate/quorate/internal/member/datadir"
	"github.com/quorate/quorate/internal/member/epoch"
)

// newEpochs makes the watch over other epochs of the cluster (package epoch) for this member.
func newEpochs(o *Options, config *appliedConfig, peers *peers, told *toldAddresses) *epoch.Monitor {
	own := claimOf(o.Data)
	own.Life = consensus.Life{}
	return epoch.New(epoch.Options{
		Own: own, ElectionTimeout: o.electionTimeout(), Clock: o.Clock, Logger: o.Logger,
		Unconnected: func() []consensus.Member { return unconnected(own.Member, config, peers, told) },
		Name:        func(id consensus.MemberID) string { return nameIn(config.now(), id) },
		Dropped:     o.Data.Dropped, Greet: peers.greet,
	})
}

func nameIn(config consensus.Config, id consensus.MemberID) string {
	known, _ := config.Member(id)
	return known.Name
}

// unconnected returns the other members of the configuration to which no connection leads, with their names, and with all URLs
// at which they may be.
func unconnected(
	self consensus.MemberID, applied *appliedConfig, connections *peers, told *toldAddresses,
) (unmet []consensus.Member) {
	config, id := applied.withID()
	for _, peer := range told.dialled(&config, id) {
		if peer.ID != self && !connections.connected(peer.ID) {
			unmet = append(unmet, peer)
		}
	}
	return unmet
}

// greet asks the process at a peer URL for its identity.
func (p *peers) greet(ctx context.Context, url string) (g identity.Greeting, err error) {
	body, err := p.transport.CallURL(ctx, url, MethodGreet, nil, MostGreeting)
	if err != nil {
		return g, err
	}
	return g, json.Unmarshal(body, &g)
}

// claimOf is the claim that a member makes when it connects.
func claimOf(data *datadir.Data) identity.Claim {
	own := &data.Identity
	return identity.Claim{Cluster: own.Cluster, Epoch: own.Epoch, Member: own.Member, Life: data.Life()}
}
