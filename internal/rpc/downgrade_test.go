package rpc_test

import (
	"errors"
	"strings"
	"testing"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/internal/base/level"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/kv/apply"
)

// twoBuilds is a cluster whose only member ran release 1.0 and runs 1.1, which knows a level more, under the policy soak=24h.
func twoBuilds(t *testing.T) (*machineBackend, *clientv3.Client) {
	t.Helper()
	b := newMachineBackendOf(t, apply.Options{Level: level.Second})
	b.runs(t, "1.0.0", level.First)
	b.do(t, &kv.Command{LevelPolicy: &kv.LevelPolicyOp{Policy: level.Policy{Kind: level.PolicySoak, Seconds: 24 * 3600},
		Initial: true, Of: b.machine.LevelView()}})
	b.runs(t, "1.1.0", level.Second)
	return b, serve(t, b, nil).client(t)
}

// runs publishes a build and its level.
func (b *machineBackend) runs(t *testing.T, build string, l level.Level) {
	t.Helper()
	b.do(t, &kv.Command{Publish: &kv.PublishOp{Member: uint64(testMember), Name: "one", Build: build, Level: l}})
}

func (b *machineBackend) do(t *testing.T, command *kv.Command) {
	t.Helper()
	result, err := b.Propose(t.Context(), command)
	if err = errors.Join(err, result.Err); err != nil {
		t.Fatal(err)
	}
}

// wantDowngrade checks the policy, and the downgrade that Status tells.
func wantDowngrade(t *testing.T, c *clientv3.Client, policy, target string) {
	t.Helper()
	ctx := waitContext(t)
	got, err := quoratepb.NewUpgradeClient(c.ActiveConnection()).Status(ctx, &quoratepb.UpgradeStatusRequest{})
	if err != nil || got.GetPolicy() != policy || got.GetDowngradeTo() != target {
		t.Errorf("%v, %v, want policy %s and target %q", got, err, policy, target)
	}
	told, err := c.Status(ctx, c.Endpoints()[0])
	if want := target + ".0"; err != nil || told.DowngradeInfo.Enabled != (target != "") ||
		target != "" && told.DowngradeInfo.TargetVersion != want {
		t.Errorf("etcd's status: %v, %v, want %q", told, err, want)
	}
}

// Ensure that a downgrade holds the level, that cancelling it puts the former policy back, and that asking changes nothing.
func TestDowngrade(t *testing.T) {
	b, c := twoBuilds(t)
	ctx := waitContext(t)
	ask := func(action clientv3.DowngradeAction, version string) error {
		answer, err := c.Downgrade(ctx, action, version)
		if err == nil && (answer.Version != "3.7" || answer.Header == nil) {
			t.Errorf("%v", answer)
		}
		return err
	}
	for _, version := range []string{"1.0", "1.0.0", "1.0.0-dev+20261124.3f1448cbc1f2"} {
		if err := ask(clientv3.DowngradeValidate, version); err != nil {
			t.Errorf("validate %s: %v", version, err)
		}
	}
	wantDowngrade(t, c, "soak=24h", "")
	for _, ends := range []func() error{
		func() error { return ask(clientv3.DowngradeCancel, "") },
		func() error { b.runs(t, "1.0.0", level.First); return b.finishDowngrade(t) },
	} {
		b.runs(t, "1.1.0", level.Second)
		if err := ask(clientv3.DowngradeEnable, "1.0"); err != nil {
			t.Fatal(err)
		}
		wantDowngrade(t, c, "hold", "1.0")
		for _, action := range []clientv3.DowngradeAction{clientv3.DowngradeValidate, clientv3.DowngradeEnable} {
			if err := ask(action, "1.0"); !errors.Is(err, rpctypes.ErrDowngradeInProcess) {
				t.Errorf("a downgrade is under way: %v", err)
			}
		}
		if err := b.finishDowngrade(t); !errors.Is(err, kv.ErrBadCommand) {
			t.Errorf("it is done while the member runs the later build: %v", err)
		}
		if err := ends(); err != nil {
			t.Error(err)
		}
		wantDowngrade(t, c, "soak=24h", "")
	}
	if err := ask(clientv3.DowngradeCancel, ""); err != nil {
		t.Errorf("cancel a downgrade that is not: %v", err)
	}
	wantDowngrade(t, c, "soak=24h", "")
}

// finishDowngrade proposes what a leader does once all members have returned.
func (b *machineBackend) finishDowngrade(t *testing.T) error {
	result, err := b.Propose(t.Context(), &kv.Command{LevelPolicy: &kv.LevelPolicyOp{Returned: true, Of: b.machine.LevelView()}})
	return errors.Join(err, result.Err)
}

// Ensure that a target that cannot return is refused with etcd's code and with what is possible, and changes nothing.
func TestDowngrade_refused(t *testing.T) {
	b, c := twoBuilds(t)
	invalid := "etcdserver: invalid downgrade target version"
	refused := func(version string, code codes.Code, words ...string) {
		t.Helper()
		for _, action := range []clientv3.DowngradeAction{clientv3.DowngradeValidate, clientv3.DowngradeEnable} {
			_, err := c.Downgrade(waitContext(t), action, version)
			var known rpctypes.EtcdError // the client turns etcd's own errors into these
			got := status.Code(err)
			if errors.As(err, &known) {
				got = known.Code()
			}
			if got != code || len(err.Error()) > 500 {
				t.Errorf("%s: %v, want %v", version, err, code)
			}
			for _, word := range words {
				if !strings.Contains(err.Error(), word) {
					t.Errorf("%s: no %q in %v", version, word, err)
				}
			}
		}
	}
	for _, version := range []string{"", "x", "0", "0.1.x", "0.-1", "0.1.2.3", strings.Repeat("1", 1<<16)} {
		refused(version, codes.InvalidArgument, rpctypes.ErrWrongDowngradeVersionFormat.Error())
	}
	const waits = "Feature level 1 is active, and a build that knows it may return until level 2 rises by the policy soak=24h; " +
		"`quorate upgrade hold` keeps it down. See `quorate upgrade status`"
	refused("3.6", codes.InvalidArgument, invalid, "no etcd reads the data of this server", waits)
	for _, version := range []string{"3.5", "3.7.0", "4.0"} {
		refused(version, codes.InvalidArgument, rpctypes.ErrInvalidDowngradeTargetVersion.Error())
	}
	refused("0.0", codes.InvalidArgument, invalid, "there is no release 0.0 of this server", waits)
	refused("1.1", codes.InvalidArgument, invalid, "release 1.1 is not older than what members run (1.1.0): a downgrade goes to an earlier release", waits)
	refused("2.0.0", codes.InvalidArgument, invalid, "is not older than", waits)
	wantDowngrade(t, c, "soak=24h", "")

	if _, err := c.Downgrade(waitContext(t), clientv3.DowngradeEnable, "1.0"); err != nil {
		t.Fatal(err)
	}
	b.do(t, &kv.Command{Raise: &kv.RaiseOp{Level: level.Second, Finalize: true, Of: b.machine.LevelView()}})
	wantDowngrade(t, c, "soak=24h", "") // it is over, too
	refused("1.0", codes.FailedPrecondition, "release 1.0 knows feature level 1 at most, and the cluster has risen to 2",
		"`quorate mirror`")
	refused("3.6", codes.InvalidArgument, "Feature level 2 is active, and a build that knows it may return. See")
	wantDowngrade(t, c, "soak=24h", "")
}
