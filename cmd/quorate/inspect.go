package main

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/quorate/quorate/internal/doctor"
	"github.com/quorate/quorate/internal/server"
	"github.com/quorate/quorate/internal/storage/keysource"
)

// inspectStopped reads the data directory of a stopped member, for `quorate doctor --offline`. It is locked for that moment
// only, and nothing in it is changed.
func inspectStopped(ctx context.Context, dataDir, walDir string, keys keysource.Source) (doctor.Stopped, error) {
	stopped, err := server.OpenToRead(ctx, dataDir, walDir, keys)
	if err != nil {
		return doctor.Stopped{}, err
	}
	s, err := stopped.Inspect()
	if err = errors.Join(err, stopped.Close()); err != nil {
		return doctor.Stopped{}, place{dataDir, walDir}.explainOffline(err)
	}
	out := doctor.Stopped{Dir: dataDir, WALDir: walDir, Cluster: s.Identity.Cluster.String(), ID: s.Identity.Member.String(),
		Name: s.NameOf(s.Identity.Member), Epoch: uint64(s.Identity.Epoch.Number), Term: uint64(s.Term),
		LastTerm: uint64(s.Last.Term), LastIndex: uint64(s.Last.Index), Commit: uint64(s.Commit), Revision: int64(s.Revision),
		WrittenMS: s.Written.UnixMilli(), Removed: slices.Contains(s.Tombstones, s.Identity.Member),
		ReadOnly: stopped.Unwritable}
	for _, id := range s.Config.Voters {
		out.Voters = append(out.Voters, id.String())
	}
	for _, id := range s.Config.Outgoing {
		out.Outgoing = append(out.Outgoing, id.String())
	}
	return out, nil
}

// explainOffline is explain for a directory that --offline names.
func (p place) explainOffline(err error) error { return fmt.Errorf("%v: %w", p, err) }
