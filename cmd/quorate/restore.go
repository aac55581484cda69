package main

import (
	"context"
	"fmt"

	"github.com/quorate/quorate/internal/backup"
	"github.com/quorate/quorate/internal/ctl/snapshot"
	"github.com/quorate/quorate/internal/server"
)

// restoreSnapshot makes a data directory as the server makes one: ctl's commands do not know it.
func restoreSnapshot(ctx context.Context, r *snapshot.Request) (*snapshot.Restored, error) {
	done, err := server.Restore(ctx, &server.RestoreRequest{Backup: continuous(r.Backup, r.Progress),
		From: r.From, FromWALDir: r.FromWALDir, DataDir: r.DataDir, WALDir: r.WALDir, SkipHashCheck: r.SkipHashCheck,
		BumpRevision: r.BumpRevision, Member: r.Member, Progress: r.Progress,
	})
	if err != nil {
		return nil, err
	}
	return &snapshot.Restored{
		DataDir: done.DataDir, Member: done.Name, MemberID: done.Self.String(), ClusterID: done.Cluster.String(),
		Members: done.Members, Revision: int64(done.Revision), Compacted: int64(done.Compacted), Keys: done.Keys,
		Versions: done.Versions, Leases: done.Leases, Users: done.Users, Roles: done.Roles, Auth: done.AuthEnabled,
		Alarms: done.Alarms, Limits: done.Limits, Audit: done.Audit, Proof: proof(done.Proved),
	}, nil
}

// verifyBackup restores a state of a continuous backup, and drops it.
func verifyBackup(ctx context.Context, b *snapshot.Backup, progress func(done, total int64)) (*snapshot.Proof, error) {
	proved, err := server.VerifyBackup(ctx, continuous(b, progress))
	return proof(proved), err
}

func continuous(b *snapshot.Backup, progress func(done, total int64)) *server.Backup {
	if b == nil {
		return nil
	}
	return &server.Backup{Store: b.Store, Catalog: b.Catalog, Target: b.Target, Place: b.Place, Scratch: b.Scratch,
		Progress: progress, Damaged: b.Damaged, Open: b.Open}
}

func proof(p *server.Proved) *snapshot.Proof {
	if p == nil {
		return nil
	}
	out := &snapshot.Proof{Entry: uint64(p.At.Index), Sum: fmt.Sprintf("%016x", p.At.Sum), Revision: int64(p.At.Revision),
		Time: backup.Time(p.At.Time), BaseEntry: uint64(p.Base.Index), Segments: p.Segments, Entries: p.Entries,
		Branches: p.Branches}
	for _, err := range p.Damaged {
		out.Damaged = append(out.Damaged, err.Error())
	}
	return out
}
