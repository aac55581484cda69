package main

import (
	"context"

	"github.com/quorate/quorate/internal/ctl/snapshot"
	"github.com/quorate/quorate/internal/server"
)

// restoreSnapshot makes a data directory as the server makes one: ctl's commands do not know it.
func restoreSnapshot(ctx context.Context, r *snapshot.Request) (*snapshot.Restored, error) {
	done, err := server.Restore(ctx, &server.RestoreRequest{
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
		Alarms: done.Alarms,
	}, nil
}
