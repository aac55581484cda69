package rpc

import (
	"context"
	"time"

	"github.com/quorate/quorate/internal/kv"
)

// countPause is the time between two looks of a leader for quotas whose count was left off.
const countPause = 5 * time.Second

// KeepCounting goes on with the counts of quotas that somebody left off, while this member leads, until ctx ends.
func (s *shared) KeepCounting(ctx context.Context) {
	ticker := time.NewTicker(countPause)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			if s.hasLimits() && s.options.Member.Leader() == s.options.Member.ID() {
				_ = s.countQuotas(ctx, "") // the next look goes on
			}
		case <-ctx.Done():
			return
		}
	}
}

// countPatience bounds the wait of one step of a count for the compaction.
const countPatience = 10 * time.Second

// countQuotas counts what the prefixes of quotas have, step by step, until all of them, or the one of a name, hold. Before each
// step it waits for a moment until this member has deleted what a compaction ended: a step has no bound over tombstones that
// are to go, since the members have different ones, and other members have deleted about as much.
func (s *shared) countQuotas(ctx context.Context, name string) error {
	for {
		op := s.nextCount(name)
		if op == nil {
			return nil
		}
		if err := s.settleCompaction(ctx); err != nil {
			return err
		}
		if _, err := s.replicate(ctx, &kv.Command{Limit: op}); err != nil {
			return err
		}
	}
}

// settleCompaction waits until this member has deleted what compactions ended, or for countPatience.
func (s *shared) settleCompaction(ctx context.Context) error {
	machine, release := s.options.Member.Machine()
	to := machine.Store().CompactRevision()
	release()
	within, cancel := context.WithTimeout(ctx, countPatience)
	defer cancel()
	if err := s.awaitCompaction(within, to); err != nil && ctx.Err() != nil {
		return err
	}
	return nil
}

// nextCount is the next step of a count; nil: all are done.
func (s *shared) nextCount(name string) *kv.LimitOp {
	machine, release := s.options.Member.Machine()
	defer release()
	for _, u := range machine.LimitUses() {
		if !u.Counted && (name == "" || name == u.Rule.Name) {
			return &kv.LimitOp{Count: u.Rule.Name, From: u.Next}
		}
	}
	return nil
}
