package rpc

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/rpc/writerapi"
)

// Estimated growth of the store by a write, beside key and value, as in etcd.
const (
	putOverheadBytes   = 256
	leaseOverheadBytes = 64
)

// quota is the state of checkQuota, which refuses a write that would make the store larger than allowed, and raises the alarm
// that then keeps all members from growing until there is room. The proposing side makes the check: members differ in the size
// of their stores, so applying an entry cannot depend on it.
type quota struct {
	mu      sync.Mutex
	raising bool
	calm    time.Time // since when the store has been well below its quota, while the alarm is raised; zero: it is not
}

// The alarm of a member ends by itself once its store has been at most quotaCalmPart of the quota for quotaCalm. Both keep it
// from coming and going: the freed part must be filled again first, and a large write that is refused in between does not
// matter, because it changes nothing. At most one alarm a minute is raised, for two entries in the log.
const (
	quotaCalmPart = 0.9
	quotaCalm     = time.Minute
	// quotaReview is the time between two checks of that.
	quotaReview = 5 * time.Second
)

// checkGrowth is checkQuota, or its replacement for a command that may have been executed.
func (s *shared) checkGrowth(ctx context.Context, command *kv.Command, check growthCheck) error {
	if check.again {
		return s.warnQuota(ctx, command)
	}
	return s.checkQuota(ctx, command, check.patience)
}

// checkQuota admits a command, or raises the alarm and refuses it. Commands that add nothing are always admitted. Only a caller
// that has the permission for its command raises the alarm, which stops the writes of all. The permission is checked here only
// then: an admitted command is signed afterwards.
func (s *shared) checkQuota(ctx context.Context, command *kv.Command, p patience) error {
	cost := growth(command)
	if cost == 0 {
		return nil
	}
	low := s.diskLow()
	if !low && s.withinQuota(cost) {
		return nil
	}
	if p == promptly { // the alarm has to be proposed
		return errWaits
	}
	if err := s.sign(ctx, command, p); err != nil {
		return err
	}
	if !low { // otherwise the member continues by itself once its disk has room
		s.raiseNoSpace(ctx)
	}
	return kv.ErrNoSpace
}

// withinQuota reports whether the store may grow by cost.
func (s *shared) withinQuota(cost int64) bool {
	if s.options.QuotaBytes < 0 {
		return true
	}
	machine, release := s.options.Member.Machine()
	defer release()
	return machine.SizeBytes()+cost < s.options.QuotaBytes
}

// warnQuota raises the alarm like checkQuota but admits the command. A command that a client proposes again was admitted once,
// and may have been executed: only the log, where a raised alarm counts as well, can give the answer of its first attempt. A
// full disk raises no alarm, so that the log would take the command: that has to wait for room.
func (s *shared) warnQuota(ctx context.Context, command *kv.Command) error {
	if err := s.checkQuota(ctx, command, patiently); errors.Is(err, kv.ErrNoSpace) && s.diskLow() {
		return fmt.Errorf("%w: %w", writerapi.ErrNoRoom, err)
	}
	return nil
}

func (s *shared) diskLow() bool { return s.options.LowDisk() != "" }

// raiseNoSpace proposes the alarm, once for all requests that are refused at the same time.
func (s *shared) raiseNoSpace(ctx context.Context) {
	q := &s.quota
	q.mu.Lock()
	busy := q.raising
	q.raising = true
	q.mu.Unlock()
	if busy {
		return
	}
	defer func() {
		q.mu.Lock()
		q.raising = false
		q.mu.Unlock()
	}()
	for _, alarm := range s.alarms() {
		if alarm.Kind == kv.AlarmNoSpace && alarm.Member == s.self {
			return
		}
	}
	s.options.Logger.Warn("store exceeds its quota, alarm raised", "quotaBytes", s.options.QuotaBytes)
	op := &kv.AlarmOp{Activate: true, Member: s.self, Kind: kv.AlarmNoSpace}
	if _, err := s.replicate(ctx, &kv.Command{Alarm: op, By: s.access.State().ByMember()}); err != nil {
		s.options.Logger.Warn("alarm could not be raised", "err", err)
	}
}

// KeepQuota ends this member's alarm once there is room again, until ctx ends.
func (s *shared) KeepQuota(ctx context.Context) {
	ticker := time.NewTicker(quotaReview)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			s.reviewQuota(ctx)
		case <-ctx.Done():
			return
		}
	}
}

// reviewQuota ends the alarm if the store has been well below its quota for long enough.
func (s *shared) reviewQuota(ctx context.Context) {
	alarm := kv.Alarm{Kind: kv.AlarmNoSpace, Member: s.self}
	q, now := &s.quota, s.options.Clock.Now()
	switch {
	case !slices.Contains(s.alarms(), alarm) || !s.wellBelowQuota():
		q.calm = time.Time{}
		return
	case q.calm.IsZero():
		q.calm = now
		return
	case now.Sub(q.calm) < quotaCalm:
		return
	}
	q.calm = time.Time{}
	op := &kv.AlarmOp{Member: alarm.Member, Kind: alarm.Kind}
	if _, err := s.replicate(ctx, &kv.Command{Alarm: op, By: s.access.State().ByMember()}); err != nil {
		if ctx.Err() == nil {
			s.options.Logger.Warn("alarm could not be ended, although the store has room again", "err", err)
		}
		return
	}
	s.options.Logger.Info("store has room again, alarm ended", "quotaBytes", s.options.QuotaBytes)
}

func (s *shared) wellBelowQuota() bool {
	if s.options.QuotaBytes < 0 {
		return true
	}
	machine, release := s.options.Member.Machine()
	defer release()
	return float64(machine.SizeBytes()) <= quotaCalmPart*float64(s.options.QuotaBytes)
}

// growth is the number of bytes that a command may add to the store.
func growth(command *kv.Command) int64 {
	switch {
	case command.Put != nil:
		return growthOfPut(command.Put)
	case command.Txn != nil:
		return growthOfTxn(command.Txn)
	case command.LeaseGrant != nil:
		return leaseOverheadBytes
	}
	return 0
}

func growthOfPut(op *kv.PutOp) int64 {
	return putOverheadBytes + int64(len(op.Key)) + int64(len(op.Value))
}

// growthOfTxn is the growth by the branch that adds more.
func growthOfTxn(op *kv.TxnOp) int64 {
	return max(growthOfOps(op.Then), growthOfOps(op.Else))
}

func growthOfOps(ops []kv.Op) int64 {
	total := int64(0)
	for i := range ops {
		switch {
		case ops[i].Put != nil:
			total += growthOfPut(ops[i].Put)
		case ops[i].Txn != nil:
			total += growthOfTxn(ops[i].Txn)
		}
	}
	return total
}
