package member_test

import (
	"slices"
	"testing"

	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/kv/lease"
)

// Ensure that the leader renews leases and tells their time to live, whichever member is asked.
func TestMember_RenewLeases(t *testing.T) {
	c := startCluster(t, 3)
	leader := c.leader()
	grant := kv.Command{LeaseGrant: &kv.LeaseGrantOp{ID: 7, TTLSeconds: 60}}
	if result, err := leader.Propose(c.ctx, &grant); err != nil || result.Err != nil {
		t.Fatal(err, result.Err)
	}
	want := []lease.Renewal{{TTLSeconds: 60}, {Err: kv.ErrLeaseNotFound}}
	for _, n := range c.running() {
		if got, err := n.RenewLeases(c.ctx, []kv.LeaseID{7, 8}); err != nil || !slices.Equal(got, want) {
			t.Errorf("member %v renewed %v, %v; want %v", n.id, got, err, want)
		}
		if remaining, granted, err := n.LeaseTimeToLive(c.ctx, 7); err != nil || granted != 60 || remaining < 30 {
			t.Errorf("member %v: %d of %d seconds remain, %v", n.id, remaining, granted, err)
		}
	}
}
