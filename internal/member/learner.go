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

// learner asks the members that this one finds where the others are, while it hears no leader: autopilot.Learned says when.
type learner struct {
	claim  identity.Claim
	told   *toldAddresses
	peers  *peers
	leader *lanes.KnownLeader
	clock  env.Clock

	electionTimeout time.Duration
}

// learnInterval is how often a member looks whether it hears no leader.
const learnInterval = 500 * time.Millisecond

// run is the goroutine of the questions.
func (l *learner) run(ctx context.Context) error {
	begun := l.clock.Now()
	return lookEvery(ctx, min(learnInterval, l.electionTimeout), func() {
		led := l.leader.Leader() != consensus.NoMember
		if urls := l.told.asks(l.claim.Member, l.clock.Now().Sub(begun), l.electionTimeout, led); len(urls) > 0 {
			l.ask(ctx, urls)
		}
	})
}

// ask asks whoever listens at some URLs, all at once, for an election timeout at most.
func (l *learner) ask(ctx context.Context, urls []string) {
	ctx, cancel := context.WithTimeout(ctx, l.electionTimeout)
	defer cancel()
	var asking sync.WaitGroup
	var reading sync.Mutex // one at a time: an answer may take many times its bytes when it is read
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

// askAddresses asks whoever listens at a peer URL where the members are.
func (p *peers) askAddresses(ctx context.Context, url string) (answer []byte, err error) {
	body, err := peercall.Encode(&methodAddresses, consensus.ConfigID{}, peercall.Nothing{})
	if err != nil {
		return nil, err
	}
	return p.transport.CallURL(ctx, url, methodAddresses.Name, body, methodAddresses.MostAnswer)
}
