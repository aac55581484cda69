package member

import (
	"log/slog"
	"slices"
	"strings"
	"sync"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/datadir"
)

// toldAddresses are where the operator said that other members are, while this one was stopped: `quorate set-address`. They are
// dialled beside those of the configuration, and forgotten once a committed configuration says something else.
type toldAddresses struct {
	options datadir.Options
	logger  *slog.Logger

	mu   sync.Mutex
	told []datadir.Address
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
	return datadir.Dialled(config, id, a.told)
}

// forget drops, from the disk too, what a committed configuration has outlived.
func (a *toldAddresses) forget(config *consensus.Config, id consensus.ConfigID) {
	a.mu.Lock()
	defer a.mu.Unlock()
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
