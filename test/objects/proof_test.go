package objects_test

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"testing"

	"github.com/quorate/quorate/internal/backup"
	"github.com/quorate/quorate/internal/backup/fetch"
	"github.com/quorate/quorate/internal/backup/replay"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/kv/apply"
	"github.com/quorate/quorate/internal/storage/engine"
	"github.com/quorate/quorate/internal/storage/files"
	"github.com/quorate/quorate/internal/storage/objects/place"
)

// catalog lists what a prefix of the bucket has, without the proxy. The caller closes the store.
func (f *fleet) catalog(prefix string) (*place.Store, *backup.Catalog, error) {
	at, err := place.Parse("s3://" + bucketName + "/" + prefix + "?endpoint=http://" + f.address)
	if err != nil {
		return nil, nil, err
	}
	keys := map[string]string{"AWS_ACCESS_KEY_ID": accessKey, "AWS_SECRET_ACCESS_KEY": secretKey}
	store, err := place.Open(at, place.Options{Getenv: func(key string) string { return keys[key] }, Memory: 128 << 20})
	if err != nil {
		return nil, nil, err
	}
	clusters, err := fetch.Clusters(f.ctx, store)
	if err == nil && len(clusters) != 1 {
		err = fmt.Errorf("clusters %v", clusters)
	}
	if err != nil {
		store.Close()
		return nil, nil, err
	}
	c, err := fetch.Catalog(f.ctx, store, clusters[0])
	if err != nil {
		store.Close()
	}
	return store, c, err
}

// restore restores a state as commands and members do, and calls check with it.
func restore(
	ctx context.Context, t *testing.T, store *place.Store, c *backup.Catalog, target backup.Target,
	check func(*replay.State),
) error {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "store")
	s, err := replay.Run(ctx, replay.Options{Store: store, FS: files.Disk, Dir: dir,
		OpenEngine: func(dir string) (engine.Engine, error) {
			return engine.Open(engine.Options{FS: files.Disk, Dir: dir})
		}}, c, target)
	if err != nil {
		return err
	}
	check(s)
	return s.Close()
}

// verify restores revisions that the recorder knows: the last one, and as many others by chance, and compares keys, values, leases,
// users and the hash that a member had. It returns how many hashes were compared.
func (f *fleet) verify(prefix string, r *recorder, count int) (hashes int) {
	f.t.Helper()
	store, c, err := f.catalog(prefix)
	if err != nil {
		f.t.Fatal(err)
	}
	defer store.Close()
	first := 0
	if oldest := c.Bases[0].Revision; oldest > 0 {
		for first < len(r.all) && r.all[first].revision < int64(oldest) {
			first++
		}
	}
	rng := rand.New(rand.NewPCG(1, 2))
	for i := range count {
		n := len(r.all) - 1
		if i > 0 {
			n = first + rng.IntN(len(r.all)-first)
		}
		w := &r.all[n]
		err := restore(f.ctx, f.t, store, c, backup.Target{Revision: kv.Revision(w.revision)}, func(s *replay.State) {
			f.compare(s.Machine, r, n)
		})
		if err != nil {
			f.t.Errorf("revision %d: %v", w.revision, err)
		}
		if w.hashed {
			hashes++
		}
	}
	return hashes
}

// compare compares a restored state with what the recorder knows of its n-th write.
func (f *fleet) compare(m *apply.Machine, r *recorder, n int) {
	f.t.Helper()
	w := &r.all[n]
	keys, leases, users := r.at(n)
	if got := int64(m.Store().Revision()); got != w.revision {
		f.t.Errorf("revision %d: restored %d", w.revision, got)
	}
	res, _, err := m.Store().Range(&kv.RangeOp{Key: []byte{0}, End: []byte{0}})
	if err != nil {
		f.t.Fatal(err)
	}
	got := map[string]string{}
	for _, pair := range res.KVs {
		got[string(pair.Key)] = string(pair.Value)
		if string(pair.Key) == w.key && (int64(pair.ModRevision) != w.revision || int64(pair.Lease) != int64(w.lease)) {
			f.t.Errorf("revision %d: its key has %d and lease %d, want lease %d", w.revision, pair.ModRevision, pair.Lease, w.lease)
		}
	}
	if !maps.Equal(got, keys) {
		f.t.Errorf("revision %d: %d keys, want %d, or other values", w.revision, len(got), len(keys))
	}
	if m.Leases().Len() != leases || leases > 0 && !m.Leases().Exists(kv.LeaseID(leases)) {
		f.t.Errorf("revision %d: %d leases, want %d", w.revision, m.Leases().Len(), leases)
	}
	if all := m.Users().Users(); len(all) != users {
		f.t.Errorf("revision %d: users %v, want %d", w.revision, all, users)
	}
	if hash, _, _, err := m.Store().HashKV(kv.Revision(w.revision)); w.hashed && (err != nil || hash != w.hash) {
		f.t.Errorf("revision %d: hash %x, %v, want %x", w.revision, hash, err, w.hash)
	}
}
