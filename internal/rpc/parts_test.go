package rpc_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/kv/apply"
	"github.com/quorate/quorate/internal/member"
)

// countsRevokes counts the revocations that calls propose.
type countsRevokes struct {
	*member.Member
	revokes atomic.Int64
}

func (c *countsRevokes) Propose(ctx context.Context, command *kv.Command) (kv.Result, error) {
	if command.LeaseRevoke != nil {
		c.revokes.Add(1)
	}
	return c.Member.Propose(ctx, command)
}

// Ensure that a lease can have more keys than one command may delete, and that its revocation is answered when all of them are
// gone; watchers get every deletion.
func TestLease_Revoke_inParts(t *testing.T) {
	const keyLen, parts = 2 * apply.EndBytes, 3
	const keys = parts // of which one is more than a part
	m := startMember(t)
	backend := &countsRevokes{Member: m}
	s := serve(t, backend, func(o *rpcOptions) { o.DeletionBytes = 2 * keyLen })
	c, ctx := s.client(t), waitContext(t)
	granted, err := c.Grant(ctx, 600)
	if err != nil {
		t.Fatal(err)
	}
	var last int64
	for i := range keys {
		put, err := c.Put(ctx, fmt.Sprintf("k%03d", i)+strings.Repeat("k", keyLen-4), "", clientv3.WithLease(granted.ID))
		if err != nil {
			t.Fatalf("key %d: %v", i, err)
		}
		last = put.Header.Revision
	}
	watched := c.Watch(ctx, "k", clientv3.WithPrefix(), clientv3.WithRev(last+1))
	revoked, err := c.Revoke(ctx, granted.ID)
	if err != nil || revoked.Header.Revision != last+parts {
		t.Fatalf("revoked at %v, want %d: %v", revoked, last+parts, err)
	}
	// A second revocation might end a lease that was granted with the same id after the end of the first.
	if n := backend.revokes.Load(); n != 1 {
		t.Errorf("one call proposed to revoke the lease %d times", n)
	}
	if r, err := c.Get(ctx, "k", clientv3.WithPrefix(), clientv3.WithCountOnly()); err != nil || r.Count != 0 {
		t.Errorf("%d keys are left: %v", r.Count, err)
	}
	revisions := map[int64]bool{}
	for seen := 0; seen < keys; {
		r, ok := <-watched
		if !ok || r.Err() != nil {
			t.Fatalf("after %d deletions: %v", seen, r.Err())
		}
		for _, event := range r.Events {
			revisions[event.Kv.ModRevision] = true
		}
		seen += len(r.Events)
	}
	if len(revisions) != parts {
		t.Errorf("deletions at revisions %v, want %d", revisions, parts)
	}
	if _, err := c.Revoke(ctx, granted.ID); err == nil {
		t.Error("it was revoked twice")
	}
}
