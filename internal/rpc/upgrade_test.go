package rpc_test

import (
	"strings"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/quorate/quorate/api/quoratepb"
)

// Ensure that every user sees the levels, that only root decides about them, and that invalid requests are refused with what
// holds a level back.
func TestUpgrade(t *testing.T) {
	_, root, alice, nobody := secured(t)
	ctx := waitContext(t)
	as := func(c *clientv3.Client) quoratepb.UpgradeClient {
		if _, err := c.AuthStatus(ctx); err != nil {
			t.Fatal(err)
		}
		return quoratepb.NewUpgradeClient(c.ActiveConnection())
	}
	now := &quoratepb.SetLevelPolicyRequest{Policy: "now"}
	next := &quoratepb.FinalizeUpgradeRequest{Level: 2}
	for name, client := range map[string]*clientv3.Client{"alice": alice, "nobody": nobody} {
		if _, err := as(client).SetPolicy(ctx, now); err == nil {
			t.Errorf("%s sets the policy", name)
		}
		if _, err := as(client).Finalize(ctx, next); err == nil || strings.Contains(err.Error(), "level 2") {
			t.Errorf("%s finalizes: %v", name, err)
		}
		if _, err := as(client).Status(ctx, &quoratepb.UpgradeStatusRequest{}); (err == nil) != (name == "alice") {
			t.Errorf("%s asks for the status: %v", name, err)
		}
	}
	upgrade := as(root)
	for _, wrong := range []string{"", "soon", "soak=", "soak=0s", "soak=1ms", "soak=10000h", strings.Repeat("x", 1<<16)} {
		_, err := upgrade.SetPolicy(ctx, &quoratepb.SetLevelPolicyRequest{Policy: wrong})
		if status.Code(err) != codes.InvalidArgument || len(err.Error()) > 300 {
			t.Errorf("policy %.40q: %.400v", wrong, err)
		}
	}
	for _, policy := range []string{"hold", "soak=72h", "now"} {
		answer, err := upgrade.SetPolicy(ctx, &quoratepb.SetLevelPolicyRequest{Policy: policy})
		if err != nil || answer.GetPolicy() != policy || answer.GetActive() != 1 || len(answer.GetMembers()) != 1 {
			t.Errorf("%s: %v, %v", policy, answer, err)
		}
	}
	for level, want := range map[uint32]string{0: "at feature level 1 already", 1: "no level falls", 2: "held back by",
		1 << 30: "held back by"} {
		_, err := upgrade.Finalize(ctx, &quoratepb.FinalizeUpgradeRequest{Level: level})
		if status.Code(err) != codes.FailedPrecondition || !strings.Contains(err.Error(), want) {
			t.Errorf("level %d: %v", level, err)
		}
	}
}
