package rpc_test

import (
	"strings"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/internal/base/level"
	"github.com/quorate/quorate/internal/kv"
)

// testRecipient is one whose identity nobody has.
const testRecipient = "age1k0xkuylettylk8x7lg4hy39a34kfe88kx3wwdzw4f20ghhjkgu6snkpnlz"

// Ensure that every user sees the backup, that only root starts and stops it, and that a policy that makes no sense, or has a
// secret, is refused by an error that does not repeat it, and changes nothing.
func TestBackup_policies(t *testing.T) {
	_, root, alice, nobody := secured(t)
	ctx := waitContext(t)
	as := func(c *clientv3.Client) quoratepb.BackupClient {
		if _, err := c.AuthStatus(ctx); err != nil {
			t.Fatal(err)
		}
		return quoratepb.NewBackupClient(c.ActiveConnection())
	}
	dir := &quoratepb.StartBackupRequest{Place: "file:///mnt/b"}
	for name, client := range map[string]*clientv3.Client{"alice": alice, "nobody": nobody} {
		if _, err := as(client).Start(ctx, dir); err == nil {
			t.Errorf("%s starts it", name)
		}
		if _, err := as(client).Stop(ctx, &quoratepb.StopBackupRequest{}); err == nil {
			t.Errorf("%s stops it", name)
		}
		if _, err := as(client).Status(ctx, &quoratepb.BackupStatusRequest{}); (err == nil) != (name == "alice") {
			t.Errorf("%s asks for the status: %v", name, err)
		}
	}
	_, _ = quoratepb.NewUpgradeClient(root.ActiveConnection()).Finalize(ctx,
		&quoratepb.FinalizeUpgradeRequest{Level: uint32(level.Own)}) // refused if the leader was faster
	api := as(root)
	if _, err := api.Stop(ctx, &quoratepb.StopBackupRequest{}); status.Code(err) != codes.FailedPrecondition {
		t.Errorf("none is on: %v", err)
	}
	for _, wrong := range []*quoratepb.StartBackupRequest{
		{}, {Place: "/mnt"}, {Place: "s3://key:hidden@b/p"}, {Place: "s3://b/p?secret=hidden"},
		{Place: "file:///" + strings.Repeat("x", kv.MaxBackupPlaceBytes)}, {Place: dir.Place, BaseSeconds: 59},
		{Place: dir.Place, BaseSeconds: -1}, {Place: dir.Place, SealMs: 1},
		{Place: dir.Place, Recipients: []string{"AGE-SECRET-KEY-1HIDDEN"}}, {Place: dir.Place, Recipients: []string{"hidden"}},
		{Place: dir.Place, Recipients: []string{testRecipient}, InTheClear: true},
		{Place: dir.Place, Keep: "14"}, {Place: dir.Place, Keep: "14d,hourly:3"},
		{Place: dir.Place, Keep: strings.Repeat("x", kv.MaxBackupKeepBytes+1)},
	} {
		_, err := api.Start(ctx, wrong)
		if status.Code(err) != codes.InvalidArgument || strings.Contains(strings.ToLower(err.Error()), "hidden") || len(err.Error()) > 400 {
			t.Errorf("%.100v: %.500v", wrong, err)
		}
	}
	if got, err := api.Status(ctx, &quoratepb.BackupStatusRequest{}); err != nil || got.GetGeneration() != 0 {
		t.Errorf("after what was refused: %v, %v", got, err)
	}
	got, err := api.Start(ctx, dir)
	if err != nil || !got.GetOn() || got.GetPlace() != dir.Place || got.GetBaseSeconds() != 21600 || got.GetSealMs() != 1000 ||
		got.GetNowMs() == 0 || got.GetKeep() != "all" {
		t.Errorf("started: %v, %v", got, err)
	}
	got, err = api.Start(ctx, &quoratepb.StartBackupRequest{BaseSeconds: 3600, Recipients: []string{testRecipient}})
	if err != nil || len(got.GetRecipients()) != 1 || got.GetRecipients()[0] != testRecipient ||
		got.GetPlace() != dir.Place || got.GetBaseSeconds() != 3600 || got.GetGeneration() != 2 {
		t.Errorf("changed: %v, %v", got, err)
	}
	for _, c := range []struct{ keep, want string }{{"336h,daily:3", "14d,daily:3"}, {"", "14d,daily:3"}, {"all", "all"}} {
		if got, err := api.Start(ctx, &quoratepb.StartBackupRequest{Keep: c.keep}); err != nil || got.GetKeep() != c.want {
			t.Errorf("keep %q: %v, %v", c.keep, got, err)
		}
	}
	got, err = api.Stop(ctx, &quoratepb.StopBackupRequest{})
	if err != nil || got.GetOn() || got.GetPlace() != dir.Place || got.GetMember() != 0 {
		t.Errorf("stopped: %v, %v", got, err)
	}
}
