package restore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/member/datadir"
	"github.com/quorate/quorate/internal/storage/etcdbackup"
	"github.com/quorate/quorate/internal/storage/etcdlog"
)

// DatabasePath is where a data directory of etcd has its database. No directory of Quorate has that file.
func DatabasePath(dataDir string) string { return filepath.Join(dataDir, "member", "snap", "db") }

// Etcd is the data directory of an etcd that was stopped in order, or that `etcdutl snapshot restore` made. The etcd can not be
// started until Close.
type Etcd struct {
	Self    consensus.MemberID
	Name    string
	Members []consensus.Member // sorted by id

	dir  string
	file *etcdbackup.File
}

// OpenEtcd looks whether the database in a data directory is complete: what etcd acknowledged may be in its log alone.
func OpenEtcd(ctx context.Context, dataDir, logDir string) (e *Etcd, err error) {
	file, err := etcdbackup.Open(DatabasePath(dataDir))
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			e, err = nil, errors.Join(fmt.Errorf("%s: %w", dataDir, err), file.Close())
		}
	}()
	if logDir == "" {
		logDir = filepath.Join(dataDir, "member", "wal")
	}
	head, err := file.Head(ctx)
	if err != nil {
		return nil, err
	}
	log, err := etcdlog.Read(ctx, logDir, head.Index)
	switch {
	case errors.Is(err, etcdlog.ErrNoLog):
		return nil, fmt.Errorf("%w: it was started with --wal-dir: use `quorate snapshot restore`, and give that directory, "+
			"too, with --from-wal-dir", err)
	case err != nil:
		return nil, err
	case log.Snapshot > head.Index || log.Missing > 0:
		return nil, fmt.Errorf("the database of this etcd lacks writes that its log has (%d, after entry %d, up to entry "+
			"%d): it was not stopped in order. Start that etcd once more and end it with SIGTERM, or take a "+
			"snapshot of it with `etcdctl snapshot save`; nothing was changed", log.Missing, head.Index,
			max(log.Last, log.Snapshot))
	}
	e = &Etcd{Self: consensus.MemberID(log.Member), dir: dataDir, file: file}
	return e, e.readMembers(ctx)
}

// Close lets the directory go.
func (e *Etcd) Close() error { return e.file.Close() }

func (e *Etcd) readMembers(ctx context.Context) error {
	members, err := e.file.Members(ctx)
	if err != nil {
		return err
	}
	for _, m := range members {
		if m.IsLearner {
			return fmt.Errorf("member %x (%s) is a learner: promote or remove it while etcd runs", m.ID,
				strings.Join(m.PeerURLs, ",")) // that never ran, and so has no name
		}
		if e.Self == consensus.MemberID(m.ID) {
			e.Name = m.Name
		}
		e.Members = append(e.Members, consensus.Member{ID: consensus.MemberID(m.ID), Name: m.Name, PeerURLs: m.PeerURLs})
	}
	slices.SortFunc(e.Members, func(a, b consensus.Member) int { return cmp.Compare(a.ID, b.ID) })
	if !slices.ContainsFunc(e.Members, func(m consensus.Member) bool { return m.ID == e.Self }) {
		return fmt.Errorf("its log is that of member %v, which is not among the members of the cluster", e.Self)
	}
	return nil
}

// TakeOver makes the directory of the same member of a cluster with the same members, in the place of etcd's, which is moved
// aside as it is. If it breaks off, the etcd is still in its place.
func (e *Etcd) TakeOver(ctx context.Context, options datadir.Options, aside string) (*Result, error) {
	r := &Request{File: aside, Name: e.Name, Self: e.Self, Members: e.Members}
	return run(ctx, options, r, e.file, aside)
}
