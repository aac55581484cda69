package k8s

import (
	"context"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

const keysPerLease = 1000

// eventLease is the lease on which one API server's events are put now.
type eventLease struct {
	mu   sync.Mutex
	id   clientv3.LeaseID
	keys int
	till time.Time // so long new events may use it: they live for the TTL at least
}

// granter is what a client does for it.
type granter interface {
	Grant(ctx context.Context, seconds int64) (*clientv3.LeaseGrantResponse, error)
}

// get returns a lease for one more event. A new one is granted for half as long again as an event must live, and shared until
// the rest is too short, or it has a thousand keys.
func (l *eventLease) get(
	ctx context.Context, client granter, ttl time.Duration, ledger *ledger,
) (clientv3.LeaseID, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	if l.keys++; l.id != 0 && l.keys <= keysPerLease && now.Before(l.till) {
		return l.id, nil
	}
	seconds := int64((ttl + ttl/2).Seconds())
	granted, err := client.Grant(ctx, seconds)
	if err != nil {
		return 0, err
	}
	l.id, l.keys, l.till = granted.ID, 1, now.Add(ttl/2)
	ledger.grant(int64(granted.ID), now.Add(time.Duration(granted.TTL)*time.Second))
	return l.id, nil
}
