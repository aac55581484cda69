package member

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/raft"
	"github.com/quorate/quorate/internal/member/lanes"
)

// transfer hands leadership to another voter.
type transfer struct {
	leader   *lanes.KnownLeader
	status   func() raft.Status
	begin    func(to consensus.MemberID) // in the core
	nameOf   func(id consensus.MemberID) string
	patience time.Duration
	stopping context.Context
}

// to returns once another voter leads: see Member.TransferLeadership.
func (t *transfer) to(ctx context.Context, id consensus.MemberID) error {
	if err := t.checkTransferee(id); err != nil {
		return err
	}
	t.begin(id)
	ctx, cancel := context.WithTimeout(ctx, t.patience)
	defer cancel()
	for {
		changed := t.leader.LeaderChanged()
		if t.leader.Leader() == id {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			if errors.Is(ctx.Err(), context.DeadlineExceeded) {
				return ErrTransferTimeout
			}
			return ctx.Err()
		case <-t.stopping.Done():
			return ErrStopped
		}
	}
}

// checkTransferee returns an error if leadership cannot go to a member: ErrNotLeader, ErrBadTransferee or a *CordonedError.
func (t *transfer) checkTransferee(id consensus.MemberID) error {
	status := t.status()
	switch {
	case !t.leader.Leads():
		return ErrNotLeader
	case !status.Config.IsVoter(id):
		return ErrBadTransferee
	case status.LeavesLeadership(id):
		return &CordonedError{Name: t.nameOf(id), Corrupt: slices.Contains(status.Spared, id)}
	}
	return nil
}
