package member

import (
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/raft"
	"github.com/quorate/quorate/internal/identity"
	"github.com/quorate/quorate/internal/member/datadir"
	"github.com/quorate/quorate/internal/membership/autopilot"
)

// toldAddresses are the addresses of other members that the operator gave while this member was stopped, with `quorate
// set-address`. The member dials them beside those of the configuration, and forgets them once a committed configuration has
// other ones. The same holds for addresses that other members reported while no leader was known; those are in memory only.
type toldAddresses struct {
	options datadir.Options
	logger  *slog.Logger

	mu      sync.Mutex
	told    []datadir.Address
	learned autopilot.Learned
	inForce consensus.Config
	id      consensus.ConfigID // of inForce
	others  []consensus.Member // of other configurations in the log when inForce came into force
	connect func(*consensus.Config)
}

// newToldAddresses reads the operator's addresses. A member may run without them, but does not find the members that moved.
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

// dialled returns the members of the configuration id, each with all its possible URLs as its peer URLs.
func (a *toldAddresses) dialled(config *consensus.Config, id consensus.ConfigID) []consensus.Member {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.learned.Beside(datadir.Dialled(config, id, a.told), id)
}

// knownMembers are the members of the configuration and of the operator's addresses, without the learned ones, in the order of
// their ids. The caller holds a.mu.
func (a *toldAddresses) knownMembers() consensus.Config {
	known := a.inForce.Including(a.others)
	return consensus.Config{Members: datadir.Dialled(&known, a.id, a.told)}
}

// configure stores a configuration in force and calls connect, now and whenever other addresses are learned. Members of other
// configurations in the log are peers, too: one of them may lead.
func (a *toldAddresses) configure(inForce *raft.ConfigInForce, connect func(*consensus.Config)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.inForce, a.id, a.others, a.connect = inForce.Config.Clone(), inForce.ID, inForce.Others, connect
	a.reconnect()
}

// reconnect opens and closes peers. The caller holds a.mu: otherwise an older configuration could be the last one.
func (a *toldAddresses) reconnect() {
	if a.connect == nil {
		return // there is no configuration yet
	}
	config := a.inForce
	config.Members = a.learned.Beside(a.knownMembers().Members, a.id)
	a.connect(&config)
}

// asks returns the URLs at which this member should now ask for the members' addresses, or nil: those of the configuration in
// force and those of the operator, and no learned ones.
func (a *toldAddresses) asks(self consensus.MemberID, now, electionTimeout time.Duration, led bool) (urls []string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.learned.Look(now, electionTimeout, led) {
		return nil
	}
	for _, m := range a.knownMembers().Members {
		if m.ID != self {
			urls = append(urls, m.PeerURLs...)
		}
	}
	return a.learned.Asks(urls)
}

// learn takes the answer of a process at one of these URLs.
func (a *toldAddresses) learn(own *identity.Claim, at string, said *autopilot.Whereabouts) {
	a.mu.Lock()
	defer a.mu.Unlock()
	known := a.knownMembers()
	before := consensus.Config{Members: a.learned.Beside(known.Members, a.id)}
	if !a.learned.Take(own, &known, a.id, at, said) {
		return
	}
	for _, m := range a.learned.Beside(known.Members, a.id) {
		was, _ := before.Member(m.ID)
		if !slices.Equal(m.PeerURLs, was.PeerURLs) {
			a.logger.Info("a member was added or has moved while this one was away, as another member says; it is looked for "+
				"there, too, until the configuration here is as new", "peer", m.ID.String(), "urls",
				strings.Join(m.PeerURLs, ","), "said-by", said.Member.String(), "at", at, "config", said.Config.String())
		}
	}
	a.reconnect()
}

// forget drops, also from the disk, the addresses that a committed configuration has outlived.
func (a *toldAddresses) forget(config *consensus.Config, id consensus.ConfigID, removed func(consensus.MemberID) bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.learned.Outlived(id)
	left, gone := datadir.Outlived(config, id, removed, a.told)
	others := len(a.others)
	a.others = slices.DeleteFunc(slices.Clone(a.others), func(m consensus.Member) bool { return removed(m.ID) })
	if len(a.others) < others || len(gone) > 0 {
		defer a.reconnect()
	}
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
