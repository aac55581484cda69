package server

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/quorate/quorate/internal/config"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/member"
	"github.com/quorate/quorate/internal/rpc"
)

const (
	publishPause   = 500 * time.Millisecond // between two attempts
	publishSilence = time.Minute            // at most, between two words about attempts that fail
)

var errStoppedEarly = errors.New("stopped before the member was ready")

// publish makes this member's name and client URLs known to all, through the log: once that is applied the member
// has a leader, its log works, and clients can be served. It waits for the rest of a cluster that is just starting.
func (s *Server) publish(ctx context.Context, _ Options) error {
	op := &kv.PublishOp{
		Member:     uint64(s.member.ID()),
		Name:       s.cfg.Name,
		ClientURLs: urlTexts(s.cfg.Advertise.ClientURLs),
		Version:    rpc.DefaultVersion.Server,
		Build:      config.Build(), // the member adds its feature level
		Zone:       s.cfg.Zone,
		Memory:     s.budgets.Limit,
	}
	waiting, next := time.Now(), time.Duration(0)
	for pause := time.After(0); ; pause = time.After(publishPause) {
		select {
		case <-pause: // what refuses may do so at once, as it does while this member serves nothing
		case <-ctx.Done():
			return errStoppedEarly
		}
		if err := errors.Join(s.refuseName(ctx), s.refuseState(ctx)); err != nil {
			return err
		}
		result, err := s.member.Propose(ctx, &kv.Command{Publish: op})
		switch {
		case err == nil && result.Err == nil:
			s.logger.Info("published", "name", op.Name, "took", time.Since(waiting).String())
			return nil
		case err == nil:
			return fmt.Errorf("publish this member: %w", result.Err)
		case ctx.Err() != nil:
			return errStoppedEarly
		case errors.Is(err, member.ErrStopped):
			return err
		}
		if waited := time.Since(waiting); waited >= next {
			next = waited + min(max(waited, publishPause), publishSilence)
			s.logger.Warn("waiting for a leader: are enough of the other members up and reachable?",
				"err", err, "waited", waited.Round(time.Second).String())
		}
	}
}

// refuseState refuses to serve with less memory than the replicated state needs, once everything acknowledged is applied here.
// The opening of the store has counted what that had, and not what the log brought since.
func (s *Server) refuseState(ctx context.Context) error {
	if s.member.ReadIndex(ctx) != nil {
		return nil
	}
	machine, release := s.member.Machine()
	defer release()
	return machine.LeasesFit(s.budgets.Starts())
}

// refuseName refuses the name of another member, so that commands mean one. A member that bore its name before does not
// stay down for it.
func (s *Server) refuseName(ctx context.Context) error {
	if s.nameBefore == s.cfg.Name || s.member.ReadIndex(ctx) != nil {
		return nil
	}
	owner, taken := s.member.Membership().NameOwner(s.cfg.Name)
	if !taken {
		return nil
	}
	return fmt.Errorf("the name %s belongs to member %v: start this member with another --name; see `quorate member list`",
		s.cfg.Name, owner)
}
