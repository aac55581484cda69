package rpc_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/internal/base/level"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/member"
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
	next := &quoratepb.FinalizeUpgradeRequest{Level: uint32(level.Own) + 1}
	for name, client := range map[string]*clientv3.Client{"alice": alice, "nobody": nobody} {
		if _, err := as(client).SetPolicy(ctx, now); err == nil {
			t.Errorf("%s sets the policy", name)
		}
		if _, err := as(client).Finalize(ctx, next); err == nil || strings.Contains(err.Error(), "level ") {
			t.Errorf("%s finalizes: %v", name, err)
		}
		if _, err := as(client).Status(ctx, &quoratepb.UpgradeStatusRequest{}); (err == nil) != (name == "alice") {
			t.Errorf("%s asks for the status: %v", name, err)
		}
	}
	upgrade := as(root)
	const own = uint32(level.Own)
	_, finalized := upgrade.Finalize(ctx, &quoratepb.FinalizeUpgradeRequest{Level: own}) // refused if the leader was faster
	if got, err := upgrade.Status(ctx, &quoratepb.UpgradeStatusRequest{}); err != nil || got.GetActive() != own {
		t.Fatalf("the level of the member's build: %v, %v; finalize: %v", got, err, finalized)
	}
	for _, wrong := range []string{"", "soon", "soak=", "soak=0", "soak=0s", "soak=1ms", "soak=10000h",
		"soak=-1h", "soak=1000000h", "soak=9999999999h", "soak=1h ", "SOAK=1h", "hold\n", "soak=nan", strings.Repeat("x", 1<<16)} {
		_, err := upgrade.SetPolicy(ctx, &quoratepb.SetLevelPolicyRequest{Policy: wrong})
		if status.Code(err) != codes.InvalidArgument || len(err.Error()) > 300 {
			t.Errorf("policy %.40q: %.400v", wrong, err)
		}
	}
	for _, policy := range []string{"hold", "soak=72h", "now"} {
		answer, err := upgrade.SetPolicy(ctx, &quoratepb.SetLevelPolicyRequest{Policy: policy})
		if err != nil || answer.GetPolicy() != policy || answer.GetActive() != own || len(answer.GetMembers()) != 1 {
			t.Errorf("%s: %v, %v", policy, answer, err)
		}
	}
	for to, want := range map[uint32]string{0: fmt.Sprintf("at feature level %d already", own), own - 1: "no level falls",
		own: "no level falls", own + 1: "held back by", 1 << 30: "held back by"} {
		_, err := upgrade.Finalize(ctx, &quoratepb.FinalizeUpgradeRequest{Level: to})
		if status.Code(err) != codes.FailedPrecondition || !strings.Contains(err.Error(), want) {
			t.Errorf("level %d: %v", to, err)
		}
	}
}

// Ensure that a status says what the leader says of a soak that stands, while one does; and that a leader that does not answer, or
// takes its time, keeps no status back.
func TestUpgrade_Status_pausedBy(t *testing.T) {
	b, c := twoBuilds(t)
	upgrade := quoratepb.NewUpgradeClient(c.ActiveConnection())
	asked := 0
	says := func(answer string, err error) {
		b.pause = func(context.Context) (string, error) { asked++; return answer, err }
	}
	check := func(name, want string, asks int) {
		t.Helper()
		asked = 0
		got, err := upgrade.Status(waitContext(t), &quoratepb.UpgradeStatusRequest{})
		if err != nil || got.GetPausedBy() != want || asked != asks {
			t.Errorf("%s: paused by %q, %v, asked %d times", name, got.GetPausedBy(), err, asked)
		}
	}
	says("m1 finds a fault", nil)
	check("a fault", "m1 finds a fault", 1)
	says("", nil)
	check("nothing", "", 1)
	says("", member.ErrNoLeader)
	check("no leader", "", 1)
	b.pause = func(ctx context.Context) (string, error) { asked++; <-ctx.Done(); return "late", ctx.Err() }
	check("a leader that hangs", "", 1)
	says("m1 finds a fault", nil)
	if _, err := upgrade.SetPolicy(waitContext(t), &quoratepb.SetLevelPolicyRequest{Policy: "hold"}); err != nil {
		t.Fatal(err)
	}
	check("a hold asks for no time", "", 0)
	b.do(t, &kv.Command{Raise: &kv.RaiseOp{Level: level.Second, Finalize: true, Of: b.machine.LevelView()}})
	if _, err := upgrade.SetPolicy(waitContext(t), &quoratepb.SetLevelPolicyRequest{Policy: "soak=1h"}); err != nil {
		t.Fatal(err)
	}
	check("nothing waits", "", 0)
}

// Ensure that of two operators who hold and finalize at the same moment, each gets what he asked for and is told so, or is told that
// the other was first and that nothing happened.
func TestUpgrade_twoOperators(t *testing.T) {
	raced := 0
	for range 40 {
		b, c := twoBuilds(t)
		upgrade := quoratepb.NewUpgradeClient(c.ActiveConnection())
		ctx := waitContext(t)
		var held, raised *quoratepb.UpgradeStatus
		var holds, raises error
		var both sync.WaitGroup
		both.Go(func() { held, holds = upgrade.SetPolicy(ctx, &quoratepb.SetLevelPolicyRequest{Policy: "hold"}) })
		both.Go(func() { raised, raises = upgrade.Finalize(ctx, &quoratepb.FinalizeUpgradeRequest{Level: 2}) })
		both.Wait()
		for _, err := range []error{holds, raises} {
			if err != nil && (status.Code(err) != codes.Aborted || !strings.Contains(err.Error(), "nothing happened, look at")) {
				t.Fatalf("another refusal than that the other was first: %v", err)
			}
		}
		rise := b.machine.Rise()
		switch rose := b.machine.ActiveLevel() == level.Second; {
		case rose != (raises == nil), (rise.Policy.String() == "hold") != (holds == nil):
			t.Errorf("level %d, policy %v; the hold was answered %v, the finalize %v", b.machine.ActiveLevel(), rise.Policy, holds,
				raises)
		case holds != nil && raises != nil:
			t.Errorf("both were refused: %v", errors.Join(holds, raises))
		case holds == nil && held.GetPolicy() != "hold", raises == nil && raised.GetActive() != uint32(level.Second):
			t.Errorf("the answers are %v and %v", held, raised)
		case holds != nil || raises != nil:
			raced++
		}
	}
	t.Logf("in %d of 40 the other one was first", raced)
}

// Ensure that a finalize which meets a downgrade does not end it: the policy is a hold before and after that.
func TestUpgrade_Finalize_duringDowngrade(t *testing.T) {
	b, c := twoBuilds(t)
	b.do(t, &kv.Command{LevelPolicy: &kv.LevelPolicyOp{Policy: level.Policy{Kind: level.PolicyHold}, Of: b.machine.LevelView()}})
	b.meanwhile = func() {
		if _, err := c.Downgrade(waitContext(t), clientv3.DowngradeEnable, "1.0"); err != nil {
			t.Error(err)
		}
	}
	upgrade := quoratepb.NewUpgradeClient(c.ActiveConnection())
	_, err := upgrade.Finalize(waitContext(t), &quoratepb.FinalizeUpgradeRequest{Level: 2})
	if rise := b.machine.Rise(); status.Code(err) != codes.Aborted || rise.Target.IsZero() || b.machine.ActiveLevel() != level.First {
		t.Errorf("%v; level %d, %+v", err, b.machine.ActiveLevel(), rise)
	}
}
