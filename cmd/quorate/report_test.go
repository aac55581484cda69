package main

import (
	"context"
	"net"
	"testing"

	"google.golang.org/grpc"

	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/internal/backup/backuptest"
)

// told is a member that keeps the last report of a verification.
type told struct {
	quoratepb.UnimplementedBackupServer
	report *quoratepb.ReportBackupRequest
}

func (m *told) Report(_ context.Context, r *quoratepb.ReportBackupRequest) (*quoratepb.BackupStatus, error) {
	m.report = r
	return &quoratepb.BackupStatus{}, nil
}

// Ensure that a report names the cluster whose backup was read, and the sum of its chain at the state that was proven.
func TestBackup_report(t *testing.T) {
	dir, heads := shipped(t, 4)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	m, server := &told{}, grpc.NewServer()
	quoratepb.RegisterBackupServer(server, m)
	go func() { _ = server.Serve(l) }()
	t.Cleanup(server.Stop)
	status, _, errs := quorate(t, "backup", "verify", "--from", "file://"+dir, "--report", "--endpoints", l.Addr().String(),
		"--scratch", t.TempDir())
	last := heads[len(heads)-1]
	if r := m.report; status != 0 || r.GetCluster() != uint64(backuptest.Cluster) || !r.GetProven() || r.GetIndex() != uint64(last.Index) ||
		r.GetSum() != last.Sum {
		t.Errorf("%d %s: reported %v, want %+v", status, errs, r, last)
	}
}
