package member

import (
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/quorate/quorate/internal/autopilot"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/datadir"
	"github.com/quorate/quorate/internal/identity"
)

// toldAddresses are where the operator said that other members are, while this one was stopped: `quorate set-address`. They are
// dialled beside those of the configuration, and forgotten once a committed configuration says something else. So is what other
// members have said while no leader was heard, which is in memory only.
type toldAddresses struct {
	options datadir.Options
	logger  *slog.Logger

	mu      sync.Mutex
	told    []datadir.Address
	learned autopilot.Learned
	inForce consensus.Config
	id      consensus.ConfigID // of inForce
	connect func(*consensus.Config)
}

// newToldAddresses reads what was told. A member may run without it: it only does not find those that moved.
func newToldAddresses(o *Options) *toldAddresses {
	a := &toldAddresses{options: o.Data.Options, logger: o.Logger}
	var err error
	if a.told, err = datadir.ReadAddresses(a.options); err != nil {
		a.logger.Error("where the operator said that members are is lost; say it again with `quorate set-address`", "err", err)
	}
	for i := range a.told {
		a.logger.Info("an operator said where a member is; this counts until the configuration says something else", "peer",
			a.told[i].Member.String(), "urls", strings.Join(a.told[i].URLs, ","), "configuration",
			strings.Join(a.told[i].Instead, ","))
	}
	return a
}

// dialled returns the members of the configuration id with all URLs at which they may be as their peer URLs.
func (a *toldAddresses) dialled(config *consensus.Config, id consensus.ConfigID) []consensus.Member {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.learned.Beside(datadir.Dialled(config, id, a.told), id)
}

// configure lets connect open and close peers as a configuration in force says, now and whenever more of it is learned.
func (a *toldAddresses) configure(config *consensus.Config, id consensus.ConfigID, connect func(*consensus.Config)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.inForce, a.id, a.connect = config.Clone(), id, connect
	a.reconnect()
}

// reconnect opens and closes peers. a.mu is held: else an older configuration could come last.
func (a *toldAddresses) reconnect() {
	config := a.inForce
	config.Members = a.learned.Beside(datadir.Dialled(&config, a.id, a.told), a.id)
	a.connect(&config)
}

// asks tells whether to ask others now where the members are, and at which URLs: those of the configuration in force and of the
// operator's word, and no others.
func (a *toldAddresses) asks(self consensus.MemberID, now, electionTimeout time.Duration, led bool) (urls []string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.learned.Look(now, electionTimeout, led) {
		return nil
	}
	for _, m := range datadir.Dialled(&a.inForce, a.id, a.told) {
		if m.ID != self {
			urls = append(urls, m.PeerURLs...)
		}
	}
	slices.Sort(urls)
	return slices.Compact(urls)
}

// learn takes what somebody has said who was found at one of these URLs.
func (a *toldAddresses) learn(own *identity.Claim, at string, said *autopilot.Whereabouts) {
	a.mu.Lock()
	defer a.mu.Unlock()
	known := datadir.Dialled(&a.inForce, a.id, a.told)
	if !a.learned.Take(own, &a.inForce, a.id, said) {
		return
	}
	for i, m := range a.learned.Beside(known, a.id) {
		if len(m.PeerURLs) > len(known[i].PeerURLs) {
			a.logger.Info("a member has moved while this one was away, as another member says; it is looked for there, too, "+
				"until the configuration here is as new", "peer", m.ID.String(), "urls", strings.Join(m.PeerURLs, ","),
				"said-by", said.Member.String(), "at", at, "config", said.Config.String())
		}
	}
	a.reconnect()
}

// forget drops, from the disk too, what a committed configuration has outlived.
func (a *toldAddresses) forget(config *consensus.Config, id consensus.ConfigID) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.learned.Outlived(id)
	left, gone := datadir.Outlived(config, id, a.told)
	if len(gone) == 0 {
		return
	}
	if err := datadir.WriteAddresses(a.options, left); err != nil {
		a.logger.Warn("could not forget where an operator said that members are", "err", err)
		return
	}
	a.told = slices.Clip(left)
	for _, id := range gone {
		a.logger.Info("the configuration says where a member is: what an operator said is forgotten", "peer", id.String())
	}
}
