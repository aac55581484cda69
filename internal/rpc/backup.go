package rpc

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/quorate/quorate/internal/backup/etcdfile"
	"github.com/quorate/quorate/internal/kv/apply"
	"github.com/quorate/quorate/internal/limits/admission"
	"github.com/quorate/quorate/internal/storage/reserve"
)

var errDiskLow = status.Error(codes.ResourceExhausted, "the disk of this member is nearly full, and a backup needs room on "+
	"it: take it from another member, or free space")

var errNoScratch = status.Error(codes.FailedPrecondition, "the data directory of this member is encrypted, and a backup is "+
	"first built in a file that is not: start it with --encryption-scratch-dir, a directory of a memory file system; or take "+
	"the backup from another member")

// backupChunkBytes is the size of a Snapshot message's blob.
const backupChunkBytes = 32 * 1024

// Snapshot streams a backup in the form of etcd's own database file, so that every tool that reads etcd's backups reads ours:
// the file in chunks, then its SHA-256 alone in the last message.
func (m *maintenanceService) Snapshot(
	_ *pb.SnapshotRequest, stream grpc.ServerStreamingServer[pb.SnapshotResponse],
) error {
	leave, entered := m.bounds.backups.Enter(admission.CallerOf(stream.Context()).Host)
	if !entered {
		return errTooManyBackups
	}
	defer leave()
	if m.options.TempDir == "" {
		return errNoScratch
	}
	if m.diskLow() {
		return errDiskLow
	}
	done := m.timings.Backup.Begin()
	size, err := m.makeBackup(stream)
	if errors.Is(err, reserve.ErrNoRoom) {
		m.options.Logger.WarnContext(stream.Context(), "a backup was given up", "err", err)
		err = errDiskLow
	}
	took := done(err)
	if err == nil {
		m.options.Logger.InfoContext(stream.Context(), "sent a backup", "bytes", size, "took", took)
	}
	return err
}

// makeBackup writes the store into a file and sends it.
func (m *maintenanceService) makeBackup(
	stream grpc.ServerStreamingServer[pb.SnapshotResponse],
) (size int64, err error) {
	file, err := os.CreateTemp(m.options.TempDir, "backup-*.db")
	if err != nil {
		return 0, fmt.Errorf("rpc: create a file for the backup: %w", err)
	}
	defer os.Remove(file.Name())
	defer file.Close()
	claim, err := m.writeBackup(stream.Context(), file.Name())
	if err != nil {
		return 0, err
	}
	defer claim.Release() // before the file is removed: it has all of the claimed bytes, or more
	return m.sendBackup(file.Name(), stream)
}

// writeBackup writes the file once there is memory and disk for it. The claim is for the file.
func (m *maintenanceService) writeBackup(ctx context.Context, name string) (claim *reserve.Claim, err error) {
	leave, err := m.bounds.backupTurns.Enter(ctx)
	if err != nil {
		return nil, cmp.Or(ctx.Err(), errTooManyBackups)
	}
	defer leave()
	expected := m.backupSize()
	if claim, err = m.options.Room.Claim(expected); err != nil {
		return nil, err
	}
	plan := etcdfile.Plan{Name: name, Memory: m.bounds.backupBytes, Expected: expected, Written: claim.Written,
		Storage: m.options.Version.Storage, Cluster: m.options.Version.Cluster}
	err = m.options.Member.Backup(ctx, func(ctx context.Context, machine *apply.Machine) error {
		return plan.Write(ctx, machine)
	})
	if err != nil {
		claim.Release()
		return nil, err
	}
	return claim, nil
}

// backupSize estimates the length of a file with all of the store: pages of 4 KiB are half full where rows come in order, and a
// row that is a little longer than a page has two.
func (m *maintenanceService) backupSize() int64 {
	machine, release := m.options.Member.Machine()
	defer release()
	return 2*machine.Store().LogicalBytes() + leastBackupBytes
}

// leastBackupBytes is the size of an empty store's file, and the step by which bbolt makes a file longer.
const leastBackupBytes = 1 << 20

func (m *maintenanceService) sendBackup(
	name string, stream grpc.ServerStreamingServer[pb.SnapshotResponse],
) (sent int64, err error) {
	file, err := os.Open(name) // again: the writer may have replaced the file of the first descriptor
	if err != nil {
		return 0, fmt.Errorf("rpc: open the backup: %w", err)
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return 0, fmt.Errorf("rpc: size of the backup: %w", err)
	}
	hash := sha256.New()
	for sent < info.Size() {
		blob := make([]byte, min(backupChunkBytes, info.Size()-sent))
		if _, err := io.ReadFull(file, blob); err != nil {
			return sent, fmt.Errorf("rpc: read the backup at %d: %w", sent, err)
		}
		hash.Write(blob)
		sent += int64(len(blob))
		err := stream.Send(&pb.SnapshotResponse{
			RemainingBytes: uint64(info.Size() - sent), Blob: blob, Version: m.options.Version.Storage,
		})
		if err != nil {
			return sent, err
		}
	}
	return sent, stream.Send(&pb.SnapshotResponse{Blob: hash.Sum(nil), Version: m.options.Version.Storage})
}
