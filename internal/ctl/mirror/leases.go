package mirror

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// lookEvery is how often the leases of the source are listed: those without keys show in no event.
const lookEvery = 2 * time.Second

// goneTTL is for a lease that ended at the source before the mirror could ask how long it was granted for: events that
// delete its keys are on their way, and then it ends here, too.
const goneTTL = 60

// leases keeps the leases of the source alive at the target.
type leases struct {
	source, target *clientv3.Client
	ctx            context.Context // of the renewals

	mu    sync.Mutex
	held  map[clientv3.LeaseID]context.CancelFunc
	ended map[clientv3.LeaseID]int64 // gone at the source, as of a revision there
	lost  bool                       // one has ended at the target by itself, with its keys
}

func newLeases(ctx context.Context, source, target *clientv3.Client) *leases {
	return &leases{source: source, target: target, ctx: ctx,
		held: map[clientv3.LeaseID]context.CancelFunc{}, ended: map[clientv3.LeaseID]int64{}}
}

// count is how many are held.
func (l *leases) count() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.held)
}

// takeLost reports once that a lease has ended at the target by itself.
func (l *leases) takeLost() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	lost := l.lost
	l.lost = false
	return lost
}

// ensure makes the target have a lease.
func (l *leases) ensure(ctx context.Context, id clientv3.LeaseID) error {
	l.mu.Lock()
	_, held := l.held[id]
	l.mu.Unlock()
	if held {
		return nil
	}
	there, err := l.source.TimeToLive(ctx, id)
	if err != nil {
		return fmt.Errorf("ask the source for lease %x: %w", int64(id), err)
	}
	ttl := there.GrantedTTL
	if there.TTL < 0 || ttl <= 0 {
		ttl = goneTTL
	}
	_, err = clientv3.RetryLeaseClient(l.target).LeaseGrant(ctx, &pb.LeaseGrantRequest{ID: int64(id), TTL: ttl})
	if err = rpctypes.Error(err); err != nil && !errors.Is(err, rpctypes.ErrLeaseExist) {
		return fmt.Errorf("grant lease %x at the target: %w", int64(id), err)
	}
	return l.hold(id)
}

// hold renews a lease of the target from now on.
func (l *leases) hold(id clientv3.LeaseID) error {
	ctx, cancel := context.WithCancel(l.ctx)
	answers, err := l.target.KeepAlive(ctx, id)
	if err != nil {
		cancel()
		return fmt.Errorf("renew lease %x at the target: %w", int64(id), err)
	}
	l.mu.Lock()
	l.held[id] = cancel
	l.mu.Unlock()
	go func() {
		for range answers {
		}
		l.mu.Lock()
		defer l.mu.Unlock()
		if ctx.Err() == nil {
			delete(l.held, id)
			l.lost = true
		}
		cancel()
	}()
	return nil
}

// look lists the leases of the source: new ones are granted at the target, and those that are gone are noted.
func (l *leases) look(ctx context.Context) error {
	list, err := l.source.Leases(ctx)
	if err != nil {
		return fmt.Errorf("list the leases of the source: %w", err)
	}
	// Of what the source has changed until now, this list shows at least the ends of leases.
	now, err := l.source.Get(ctx, positionKey, clientv3.WithCountOnly())
	if err != nil {
		return err
	}
	there := map[clientv3.LeaseID]bool{}
	for _, lease := range list.Leases {
		there[lease.ID] = true
		if err := l.ensure(ctx, lease.ID); err != nil {
			return err
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for id := range l.held {
		if _, noted := l.ended[id]; !noted && !there[id] {
			l.ended[id] = now.Header.Revision
		}
	}
	return nil
}

// settle ends leases at the target that are gone at the source, once the target has all changes from before that: then they
// have no keys left.
func (l *leases) settle(ctx context.Context, reached int64) error {
	l.mu.Lock()
	var due []clientv3.LeaseID
	for id, revision := range l.ended {
		if reached >= revision {
			due = append(due, id)
		}
	}
	l.mu.Unlock()
	for _, id := range due {
		again, err := l.source.TimeToLive(ctx, id)
		if err != nil {
			return err
		}
		left, err := l.target.TimeToLive(ctx, id, clientv3.WithAttachedKeys())
		if err != nil {
			return err
		}
		if again.TTL < 0 && left.TTL >= 0 && len(left.Keys) == 0 {
			if _, err := l.target.Revoke(ctx, id); err != nil && !errors.Is(err, rpctypes.ErrLeaseNotFound) {
				return err
			}
		}
		l.mu.Lock()
		delete(l.ended, id)
		if again.TTL < 0 && len(left.Keys) == 0 {
			if cancel := l.held[id]; cancel != nil {
				cancel()
			}
			delete(l.held, id)
		}
		l.mu.Unlock()
	}
	return nil
}

// adopt renews what the target has already, as after a restart of the mirror.
func (l *leases) adopt(ctx context.Context) error {
	list, err := l.target.Leases(ctx)
	if err != nil {
		return fmt.Errorf("list the leases of the target: %w", err)
	}
	for _, lease := range list.Leases {
		l.mu.Lock()
		_, held := l.held[lease.ID]
		l.mu.Unlock()
		if held {
			continue
		}
		if err := l.hold(lease.ID); err != nil {
			return err
		}
	}
	return nil
}

// settled reports whether no lease has still to end at the target.
func (l *leases) settled() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.ended) == 0
}

// missing reports whether a lease has ended at the target that the source still has, with keys from before a revision that
// the target had: while no mirror ran, no process renewed it.
func (l *leases) missing(ctx context.Context, had int64) (bool, error) {
	list, err := l.source.Leases(ctx)
	if err != nil {
		return false, fmt.Errorf("list the leases of the source: %w", err)
	}
	for _, lease := range list.Leases {
		l.mu.Lock()
		_, held := l.held[lease.ID]
		l.mu.Unlock()
		if held {
			continue
		}
		there, err := l.source.TimeToLive(ctx, lease.ID, clientv3.WithAttachedKeys())
		if err != nil {
			return false, err
		}
		for _, key := range there.Keys {
			found, err := l.source.Get(ctx, string(key))
			if err != nil {
				return false, err
			}
			if len(found.Kvs) > 0 && found.Kvs[0].ModRevision <= had {
				return true, nil
			}
		}
	}
	return false, nil
}
