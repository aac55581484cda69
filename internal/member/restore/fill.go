package restore

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/quorate/quorate/internal/auth"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/identity"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/kv/apply"
	"github.com/quorate/quorate/internal/kv/lease"
	"github.com/quorate/quorate/internal/limits/memory"
	"github.com/quorate/quorate/internal/member/datadir"
	"github.com/quorate/quorate/internal/storage/etcdbackup"
)

// maxRevision is the highest revision of a file. No cluster comes near it, and raised by maxBump it is still a revision.
const maxRevision = 1 << 62

// Request is what to restore, and for which member.
type Request struct {
	File          string // a snapshot, a database of etcd, or a data directory of etcd
	From          string // the source of File, for operators; empty: File
	LogDir        string // of the etcd whose data directory File is; empty: in that directory
	SkipHashCheck bool   // take a file without a checksum, or with a wrong one
	// BumpRevision raises the revision by so much, and forgets all history before: clients that have seen revisions which
	// are not in the file then begin anew, and do not miss what they can not know of. Zero: the revision of the file.
	BumpRevision uint64

	Name    string
	Self    consensus.MemberID
	Members []consensus.Member // sorted by id; all will vote
	// Progress, if set, is told now and then how many bytes of the file were read.
	Progress func(done, total int64)
}

// Result is what was restored.
type Result struct {
	Cluster             consensus.ClusterID
	Revision, Compacted kv.Revision // Compacted 0: nothing is
	Versions            int
	Keys, Leases        int
	Users, Roles        int
	AuthEnabled         bool
	Alarms              int  // in the file, and not taken over
	Limits              int  // of a continuous backup alone, as the next one
	Audit               bool // there is a policy of the audit
}

func run(ctx context.Context, options datadir.Options, r *Request, file *etcdbackup.File, aside string) (*Result, error) {
	run := &restoring{ctx: ctx, Request: r, file: file}
	if err := run.fits(options.Apply.MostLeases); err != nil {
		if errors.Is(err, etcdbackup.ErrDamaged) {
			return nil, fmt.Errorf("%s: %w", r.File, err)
		}
		return nil, err
	}
	if err := datadir.Restore(options, aside, run.fill); err != nil {
		if errors.Is(err, etcdbackup.ErrDamaged) {
			return nil, fmt.Errorf("%s: %w", r.File, err)
		}
		return nil, err
	}
	return &run.result, nil
}

// restoring is one run.
type restoring struct {
	*Request
	ctx    context.Context
	file   *etcdbackup.File
	result Result
}

// fits refuses more leases than there is memory for, before anything is written.
func (r *restoring) fits(most int64) error {
	leases, err := r.file.Count(r.ctx, "lease")
	if err != nil {
		return err
	}
	return memory.CheckLeases(int64(leases), int64(leases)*lease.EachBytes, most)
}

func (r *restoring) fill(to *apply.Loader) (*datadir.Restored, error) {
	head, err := r.file.Head(r.ctx)
	if err != nil {
		return nil, err
	}
	for _, step := range []func(*apply.Loader) error{r.versions, r.leases, r.users} {
		if err := step(to); err != nil {
			return nil, err
		}
	}
	if r.result.Alarms, err = r.file.Count(r.ctx, "alarm"); err != nil {
		return nil, err
	}
	// The last change may be a tombstone that was compacted: then the compaction alone tells the revision.
	r.result.Compacted = head.Compacted
	r.result.Revision = max(r.result.Revision, to.LastRevision(), head.Compacted, 1)
	if r.result.Revision > maxRevision {
		return nil, fmt.Errorf("%w: revision %d leaves no room for later ones", etcdbackup.ErrDamaged, r.result.Revision)
	}
	if r.BumpRevision > 0 {
		r.result.Revision += kv.Revision(r.BumpRevision)
		r.result.Compacted = r.result.Revision
	}
	loaded, err := to.Finish(r.result.Revision, r.result.Compacted)
	if err != nil {
		return nil, err
	}
	r.result.Keys, r.result.Leases = loaded.Keys, loaded.Leases
	ids := make([]consensus.MemberID, len(r.Members))
	for i := range r.Members {
		ids[i] = r.Members[i].ID
	}
	r.result.Cluster = identity.ClusterID(ids, loaded.Digest[:])
	return &datadir.Restored{Name: r.Name, Self: r.Self, Cluster: r.result.Cluster, Members: r.Members,
		From: cmp.Or(r.From, r.File)}, nil
}

func (r *restoring) versions(to *apply.Loader) error {
	var done int64
	return r.file.Rows(r.ctx, "key", func(key, value []byte) error {
		v, err := etcdbackup.DecodeVersion(key, value)
		if err != nil {
			return err
		}
		if done += int64(len(key) + len(value)); r.Progress != nil && r.result.Versions%4096 == 0 {
			r.Progress(min(done, r.file.SizeBytes()), r.file.SizeBytes())
		}
		r.result.Versions++
		if v.Bump {
			r.result.Revision = max(r.result.Revision, v.Rev.Main)
			return nil
		}
		return to.AddVersion(v.Rev, v.Tombstone, &v.KV)
	})
}

func (r *restoring) leases(to *apply.Loader) error {
	return r.file.Rows(r.ctx, "lease", func(key, value []byte) error {
		id, ttl, err := etcdbackup.DecodeLease(key, value)
		if err != nil {
			return err
		}
		return to.AddLease(id, ttl)
	})
}

func (r *restoring) readUsers() ([]auth.Row, etcdbackup.Users, error) {
	users, err := r.file.Users(r.ctx, auth.MaxBytes)
	if err != nil {
		return nil, users, err
	}
	rows, err := auth.Imported(users.Enabled, users.Revision, users.Users, users.Roles)
	if err != nil {
		return nil, users, fmt.Errorf("users and roles: %w: %w", etcdbackup.ErrDamaged, err)
	}
	return rows, users, nil
}

func (r *restoring) users(to *apply.Loader) error {
	rows, users, err := r.readUsers()
	if err != nil {
		return err
	}
	to.AddUsers(rows)
	r.result.Users, r.result.Roles, r.result.AuthEnabled = len(users.Users), len(users.Roles), users.Enabled
	return nil
}
