package member

import (
	"context"
	"sync"
	"time"

	"github.com/quorate/quorate/internal/base/env"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/identity"
	"github.com/quorate/quorate/internal/member/lanes"
	"github.com/quorate/quorate/internal/member/peercall"
)

// learner asks other members for the members' addresses while this member knows no leader: autopilot.Learned says when.
type learner struct {
	claim  identity.Claim
	told   *toldAddresses
	peers  *peers
	leader *lanes.KnownLeader
	clock  env.Clock

	electionTimeout time.Duration
}

// learnInterval is how often a member checks whether it knows a leader.
const learnInterval = 500 * time.Millisecond

// run is the goroutine that asks.
func (l *learner) run(ctx context.Context) error {
	begun := l.clock.Now()
	return lookEvery(ctx, min(learnInterval, l.electionTimeout), func() {
		led := l.leader.Leader() != consensus.NoMember
		if urls := l.told.asks(l.claim.Member, l.clock.Now().Sub(begun), l.electionTimeout, led); len(urls) > 0 {
			l.ask(ctx, urls)
		}
	})
}

// ask asks the processes at some URLs, all at once, for an election timeout at most.
func (l *learner) ask(ctx context.Context, urls []string) {
	ctx, cancel := context.WithTimeout(ctx, l.electionTimeout)
	defer cancel()
	var asking sync.WaitGroup
	var reading sync.Mutex // one answer at a time: decoded, it may take many times its bytes
	for _, url := range urls {
		asking.Go(func() {
			raw, err := l.peers.askAddresses(ctx, url)
			if err != nil {
				return
			}
			reading.Lock()
			defer reading.Unlock()
			if said, err := peercall.Decode(faults, &methodAddresses, raw); err == nil {
				l.told.learn(&l.claim, url, &said)
			}
		})
	}
	asking.Wait()
}

// askAddresses asks the process at a peer URL for the members' addresses.
func (p *peers) askAddresses(ctx context.Context, url string) (answer []byte, err error) {
	body, err := peercall.Encode(&methodAddresses, consensus.ConfigID{}, peercall.Nothing{})
	if err != nil {
		return nil, err
	}
	return p.transport.CallURL(ctx, url, methodAddresses.Name, body, methodAddresses.MostAnswer)
}
