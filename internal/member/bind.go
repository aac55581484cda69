package member

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/quorate/quorate/internal/base/typed"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/raft"
	"github.com/quorate/quorate/internal/identity"
	"github.com/quorate/quorate/internal/membership"
)

// bindPatience bounds one attempt to bind members; the next scan tries again.
const bindPatience = 5 * time.Second

// binder binds members to their data directories, and refuses members whose directory is older than what they acknowledged.
type binder struct {
	self    consensus.MemberID
	storage consensus.StorageID // storage id of this member
	config  *appliedConfig
	peers   *peers
	changer *changer
	life    *lifecycle
	logger  *slog.Logger
}

// bindMet binds, on the leader, members that have connected and are not bound yet to their data directories: newcomers, and
// founding members that came late. Until then their votes and acknowledgements do not count.
func (b *binder) bindMet(ctx context.Context) {
	config := b.config.now()
	steps := identity.Bindings(&config, b.peers.transport.Met(), b.self, b.storage)
	if len(steps) == 0 {
		return
	}
	attempt, cancel := context.WithTimeout(ctx, bindPatience)
	defer cancel()
	_, err := b.changer.change(attempt, &consensus.ChangeRequest{Steps: steps, Protocol: consensus.ProtocolSingle})
	var refused *membership.RefusedError
	switch {
	case err == nil:
		for _, step := range steps {
			b.logger.Info("bound a member to its data directory", "peer", step.Member.ID.String(),
				"storage", step.Member.Storage.String())
		}
	case !errors.As(err, &refused) && ctx.Err() == nil:
		b.logger.Warn("could not bind a member to its data directory yet", "err", err)
	}
}

// distrust refuses a member whose disk was rolled back: it would acknowledge and vote without the entries and votes that it
// lost.
func (b *binder) distrust(e raft.Denied) {
	b.logger.Error("a member has lost what it acknowledged: its data directory is older than it was, and counts no more",
		"peer", e.Member.String(), "acknowledged", uint64(e.Match), "holds", uint64(e.Claimed),
		"do", typed.StartOver("its data directory", "it", "", b.config.nameOf(e.Member)))
	b.life.background(func() {
		if err := b.peers.transport.Distrust(e.Member); err != nil {
			b.life.fail(err)
		}
	})
}
