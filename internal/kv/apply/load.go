package apply

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"

	"github.com/quorate/quorate/internal/auth"
	"github.com/quorate/quorate/internal/base/level"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/kv/lease"
	"github.com/quorate/quorate/internal/kv/mvcc"
	"github.com/quorate/quorate/internal/storage/engine"
)

// Loader fills an empty engine with the initial contents of a cluster: versions in the order of revisions, leases and users, in
// any order between them, and Finish. The store belongs to no cluster yet: Found assigns it to one.
type Loader struct {
	versions *mvcc.Loader
	digest   hash.Hash
	leases   map[kv.LeaseID]bool
	rows     lease.Rows
	lessor   *lease.Lessor
}

// NewLoader begins to fill an empty engine.
func NewLoader(eng engine.Engine) *Loader {
	l := &Loader{digest: sha256.New(), leases: map[kv.LeaseID]bool{}, lessor: lease.New()}
	l.versions = mvcc.NewLoader(eng, l.digest)
	l.rows = lease.Rows{Table: l.versions, Prefix: []byte{tableLease}}
	return l
}

// AddVersion adds a version of a key: see mvcc.Loader.
func (l *Loader) AddVersion(rev kv.Rev, tombstone bool, p *kv.KeyValue) error {
	return l.versions.AddVersion(rev, tombstone, p)
}

// AddLease adds a lease, whose time begins anew.
func (l *Loader) AddLease(id kv.LeaseID, ttlSeconds int64) error {
	if id == 0 || l.leases[id] || ttlSeconds > kv.MaxLeaseTTLSeconds {
		return fmt.Errorf("%w: lease %x for %d seconds", ErrCorruptRow, int64(id), ttlSeconds)
	}
	l.leases[id] = true
	l.lessor.Grant(&l.rows, id, ttlSeconds)
	return nil
}

// AddUsers adds the rows of users and roles: see auth.Imported.
func (l *Loader) AddUsers(rows []auth.Row) {
	for i := range rows {
		l.versions.Set(append([]byte{tableState, rowAuth}, rows[i].Key...), rows[i].Value)
	}
}

// LastRevision is the revision of the last version.
func (l *Loader) LastRevision() kv.Revision { return l.versions.LastRevision() }

// Loaded is what a Loader has written.
type Loaded struct {
	// Digest covers all that was loaded, but for versions that a compaction has begun to delete: equal on all members that
	// loaded the same.
	Digest [sha256.Size]byte
	Keys   int // that exist
	Leases int
}

// Finish attaches the keys to their leases and makes all durable: see mvcc.Loader. A key whose lease does not exist stays, as
// in etcd.
func (l *Loader) Finish(revision, compact kv.Revision) (Loaded, error) {
	done := Loaded{Leases: len(l.leases)}
	err := l.versions.VisitKeys(compact, func(user []byte, id kv.LeaseID) {
		done.Keys++
		if id != 0 && l.leases[id] {
			l.lessor.Attach(&l.rows, id, user)
		}
	})
	if err == nil {
		err = l.versions.Finish(revision, compact)
	}
	l.digest.Sum(done.Digest[:0])
	return done, err
}

// Discard releases the engine after an error.
func (l *Loader) Discard() { l.versions.Discard() }

// Found makes a store that a Loader filled, or that was refounded, the state of a cluster after the entry that base names, as
// if a snapshot of that position had been installed: every other member begins with the same, or gets a snapshot. The cluster
// begins at the feature level that the store's rows need. It is durable on return, and may be repeated until the first entry
// is applied.
func Found(eng engine.Engine, cluster consensus.ClusterID, at level.Level, base *consensus.SnapshotMeta) error {
	batch := eng.NewBatch()
	batch.Set(rowIdentity, identity(cluster, at))
	batch.Set(rowApplied, appendPosition(nil, base.Position))
	batch.Set(rowChain, appendChain(nil, base.Position.Index, seed(cluster)))
	batch.Set(rowConfig, consensus.AppendSnapshotMeta(nil, base))
	err := errors.Join(batch.Commit(), batch.Close())
	if err == nil {
		err = eng.Flush()
	}
	if err != nil {
		return fmt.Errorf("apply: found a cluster on loaded contents: %w", err)
	}
	return nil
}
