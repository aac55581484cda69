package rpc_test

import (
	"fmt"
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
	s, root, alice, nobody := secured(t)
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
		{Place: "file:///" + strings.Repeat("é", kv.MaxBackupPlaceBytes/3)},
		{Place: dir.Place, Recipients: []string{"AGE-SECRET-KEY-1HIDDEN"}}, {Place: dir.Place, Recipients: []string{"hidden"}},
		{Place: dir.Place, Recipients: []string{testRecipient}, InTheClear: true},
		{Place: dir.Place, Keep: "14"}, {Place: dir.Place, Keep: "14d,hourly:3"},
		{Place: dir.Place, Keep: strings.Repeat("x", kv.MaxBackupKeepBytes+1)},
		{Place: dir.Place, VerifySeconds: new(int64(1))},
	} {
		_, err := api.Start(ctx, wrong)
		if status.Code(err) != codes.InvalidArgument || strings.Contains(strings.ToLower(err.Error()), "hidden") || len(err.Error()) > 400 {
			t.Errorf("%.100v: %.500v", wrong, err)
		}
		if long := len(wrong.GetPlace()) > 500; long != strings.Contains(fmt.Sprint(err), "and at most 2048 are taken") {
			t.Errorf("%.100v: %.500v", wrong, err)
		}
	}
	for says, wrong := range map[string]*quoratepb.StartBackupRequest{
		"--base-every 3s: choose 1m to 720h":               {Place: dir.Place, BaseSeconds: 3},
		"--seal-after 99ms: choose 100ms to 1h":            {Place: dir.Place, SealMs: 99},
		"--verify-every -1s: choose 1m to 720h, or 0 for":  {Place: dir.Place, VerifySeconds: new(int64(-1))},
		"--base-every 2592001s: choose 1m to 720h":         {Place: dir.Place, BaseSeconds: kv.MaxBackupBaseSeconds + 1},
		"--verify-every 59s: choose 1m to 720h, or 0 for ": {Place: dir.Place, VerifySeconds: new(int64(59))},
	} {
		if _, err := api.Start(ctx, wrong); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("want %q: %v", says, err)
		}
	}
	if got, err := api.Status(ctx, &quoratepb.BackupStatusRequest{}); err != nil || got.GetGeneration() != 0 {
		t.Errorf("after what was refused: %v, %v", got, err)
	}
	got, err := api.Start(ctx, dir)
	if err != nil || !got.GetOn() || got.GetPlace() != dir.Place || got.GetBaseSeconds() != 21600 || got.GetSealMs() != 1000 ||
		got.GetNowMs() == 0 || got.GetKeep() != "all" || got.GetVerifySeconds() != 86400 {
		t.Errorf("started: %v, %v", got, err)
	}
	reports(t, s, map[string]quoratepb.BackupClient{"alice": as(alice), "nobody": as(nobody)}, api, dir.Place)
	got, err = api.Start(ctx, &quoratepb.StartBackupRequest{BaseSeconds: 3600, VerifySeconds: new(int64(0)),
		Recipients: []string{testRecipient}})
	if err != nil || len(got.GetRecipients()) != 1 || got.GetRecipients()[0] != testRecipient ||
		got.GetPlace() != dir.Place || got.GetBaseSeconds() != 3600 || got.GetGeneration() != 2 ||
		got.GetVerifySeconds() != 0 || got.GetProven() != nil {
		t.Errorf("changed: %v, %v", got, err)
	}
	for _, c := range []struct{ keep, want string }{{"336h,daily:3", "14d,daily:3"}, {"", "14d,daily:3"}, {"all", "all"}} {
		if got, err := api.Start(ctx, &quoratepb.StartBackupRequest{Keep: c.keep}); err != nil || got.GetKeep() != c.want {
			t.Errorf("keep %q: %v, %v", c.keep, got, err)
		}
	}
	// The operator's machine has its own files, and names them in its URL.
	if _, err := api.Start(ctx, &quoratepb.StartBackupRequest{Place: "s3://bucket/p?endpoint=https://s3.example"}); err != nil {
		t.Fatal(err)
	}
	for url, want := range map[string]codes.Code{"s3://bucket/p?endpoint=https://s3.example&credentials=/k&ca=/c.pem": codes.OK,
		"s3://bucket/q?endpoint=https://s3.example&credentials=/k": codes.FailedPrecondition} {
		if _, err := api.Report(ctx, &quoratepb.ReportBackupRequest{Place: url, Cluster: uint64(testCluster), Why: "gone",
			Damaged: 1}); status.Code(err) != want {
			t.Errorf("report of %s: %v", url, err)
		}
	}
	if _, err := api.Start(ctx, dir); err != nil {
		t.Fatal(err)
	}
	got, err = api.Stop(ctx, &quoratepb.StopBackupRequest{})
	if err != nil || got.GetOn() || got.GetPlace() != dir.Place || got.GetMember() != 0 {
		t.Errorf("stopped: %v, %v", got, err)
	}
}

// reports ensures that root alone reports how a try to prove the backup ended, that the row names root, and that what cannot be
// is refused.
func reports(t *testing.T, s *server, others map[string]quoratepb.BackupClient, root quoratepb.BackupClient, place string) {
	t.Helper()
	ctx := waitContext(t)
	const own = uint64(testCluster)
	machine, release := s.backend.Machine()
	mark, kept := machine.ChainAt(1)
	release()
	if !kept || mark.Index != 1 {
		t.Fatalf("the chain has %+v", mark)
	}
	proven := &quoratepb.ReportBackupRequest{Place: place, Cluster: own, Proven: true, Index: 1, Sum: mark.Sum, Revision: 1, TookMs: 7,
		Entries: 3}
	for name, client := range others {
		if _, err := client.Report(ctx, proven); err == nil {
			t.Errorf("%s reports", name)
		}
	}
	for want, wrong := range map[*quoratepb.ReportBackupRequest]codes.Code{
		{Place: place}:                             codes.InvalidArgument,
		{Place: place, Cluster: own}:               codes.InvalidArgument,
		{Place: place, Why: "w"}:                   codes.InvalidArgument,
		{Place: place, Cluster: own + 1, Why: "w"}: codes.FailedPrecondition,
		{Place: place, Cluster: own, Proven: true, Index: 1, Sum: mark.Sum, Why: "w"}:      codes.InvalidArgument,
		{Place: place, Cluster: own, Proven: true, Index: 1, Sum: mark.Sum + 1}:            codes.FailedPrecondition,
		{Place: "file:///other", Cluster: own, Why: "w"}:                                   codes.FailedPrecondition,
		{Place: "s3://key:hidden@b/p", Cluster: own, Why: "w"}:                             codes.InvalidArgument,
		{Place: place, Cluster: own, Proven: true, Index: 1 << 40}:                         codes.FailedPrecondition,
		{Place: place, Cluster: own, Proven: true, Index: 1, Sum: mark.Sum, Revision: 1e6}: codes.FailedPrecondition,
		{Place: place, Cluster: own, Proven: true}:                                         codes.FailedPrecondition,
		{Place: place, Cluster: own, Why: "w", TookMs: -1}:                                 codes.InvalidArgument,
	} {
		if _, err := root.Report(ctx, want); status.Code(err) != wrong || strings.Contains(err.Error(), "hidden") {
			t.Errorf("%v: %v", want, err)
		}
	}
	if got, err := root.Report(ctx, &quoratepb.ReportBackupRequest{Place: place, Cluster: own, Why: "object log/1: gone\x1b",
		Damaged: 1}); err != nil ||
		!got.GetVerified().GetFailed() || got.GetVerified().GetBy() != "root" || got.GetProven() != nil {
		t.Errorf("failed: %v, %v", got, err)
	}
	got, err := root.Report(ctx, proven)
	if p := got.GetProven(); err != nil || p.GetRevision() != 1 || p.GetTookMs() != 7 || p.GetBy() != "root" || p.GetTimeMs() == 0 ||
		!got.GetVerified().GetProven() {
		t.Errorf("proven: %v, %v", got, err)
	}
}
