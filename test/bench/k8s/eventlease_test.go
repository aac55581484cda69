package k8s

import (
	"context"
	"errors"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// counter grants leases 1, 2, 3 and so on, or fails.
type counter struct {
	granted int64
	seconds int64
	fails   bool
}

func (c *counter) Grant(_ context.Context, seconds int64) (*clientv3.LeaseGrantResponse, error) {
	if c.fails {
		return nil, errors.New("no leader")
	}
	c.granted++
	c.seconds = seconds
	return &clientv3.LeaseGrantResponse{ID: clientv3.LeaseID(c.granted), TTL: seconds}, nil
}

// A thousand keys share a lease; another one is granted when it is full, or when events would live too short a time.
func TestEventLease_get(t *testing.T) {
	var l eventLease
	server, ledger := &counter{}, newLedger()
	ttl := time.Hour
	for i := range 3 * keysPerLease {
		before := time.Now()
		id, err := l.get(context.Background(), server, ttl, ledger)
		if want := clientv3.LeaseID(i/keysPerLease + 1); err != nil || id != want {
			t.Fatalf("event %d: got lease %d, %v, want %d", i, id, err, want)
		}
		if end := ledger.granted[int64(id)]; i%keysPerLease == 0 && end.Before(before.Add(90*time.Minute)) {
			t.Fatalf("lease %d may end at %v, granted at %v", id, end, before)
		}
	}
	l.till = time.Now()
	if id, err := l.get(context.Background(), server, ttl, ledger); err != nil || id != 4 || server.seconds != 5400 {
		t.Errorf("too short a rest: got lease %d for %d s, %v", id, server.seconds, err)
	}
	server.fails, l.till = true, time.Now()
	if _, err := l.get(context.Background(), server, ttl, ledger); err == nil {
		t.Error("a refused grant: no error")
	}
}
