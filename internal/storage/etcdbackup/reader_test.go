package etcdbackup_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"go.etcd.io/bbolt"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/storage/etcdbackup"
)

// write makes a file with so many keys, each written twice, and one deleted; sealed with its checksum.
func write(t testing.TB, keys, valueBytes int) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "s.db")
	w, err := etcdbackup.Create(context.Background(), name, etcdbackup.Options{})
	if err != nil {
		t.Fatal(err)
	}
	rev := kv.Revision(1)
	for version := int64(1); version <= 2; version++ {
		for i := range keys {
			rev++
			p := kv.KeyValue{Key: fmt.Appendf(nil, "key-%06d", i), Value: bytes.Repeat([]byte{byte(i)}, valueBytes),
				CreateRevision: kv.Revision(2 + i), ModRevision: rev, Version: version, Lease: 7}
			err = errors.Join(err, w.Change(rev, []kv.Event{{KV: p}}))
		}
	}
	gone := kv.KeyValue{Key: []byte("key-000000"), ModRevision: rev + 1}
	err = errors.Join(err, w.Change(rev+1, []kv.Event{{Kind: kv.EventDelete, KV: gone}}), w.Lease(7, 60),
		w.Member(&etcdbackup.Member{ID: 0xab, Name: "m1", PeerURLs: []string{"http://p"}}),
		w.Meta(&etcdbackup.Meta{Index: 9, Term: 2, Voters: []consensus.MemberID{1}, Compacted: 3, Storage: "3.7.0",
			Cluster: "3.7.1"}), w.Finish(), w.Close())
	if err != nil {
		t.Fatal(err)
	}
	seal(t, name)
	return name
}

// seal adds the checksum, as Maintenance.Snapshot does.
func seal(t testing.TB, name string) {
	t.Helper()
	content, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(content)
	if err := os.WriteFile(name, append(content, sum[:]...), 0o600); err != nil {
		t.Fatal(err)
	}
}

func open(t testing.TB, name string) *etcdbackup.File {
	t.Helper()
	f, err := etcdbackup.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	return f
}

// Ensure that a file is read as bbolt reads it, whether its buckets are a few bytes, one page, or a tree with long rows.
func TestFile_Rows_asBbolt(t *testing.T) {
	for _, size := range []struct{ keys, valueBytes int }{{0, 0}, {1, 3}, {3, 9000}, {2000, 100}, {20, 200_000}} {
		name := write(t, size.keys, size.valueBytes)
		f := open(t, name)
		if err := f.Verify(t.Context()); err != nil {
			t.Fatal(err)
		}
		db, err := bbolt.Open(name, 0o600, &bbolt.Options{ReadOnly: true})
		if err != nil {
			t.Fatal(err)
		}
		err = db.View(func(tx *bbolt.Tx) error {
			return tx.ForEach(func(bucket []byte, b *bbolt.Bucket) error {
				var want, got []byte
				err := b.ForEach(func(k, v []byte) error {
					want = fmt.Appendf(want, "%q %q\n", k, v)
					return nil
				})
				err = errors.Join(err, f.Rows(t.Context(), string(bucket), func(k, v []byte) error {
					got = fmt.Appendf(got, "%q %q\n", k, v)
					return nil
				}))
				if !bytes.Equal(got, want) {
					t.Errorf("%v, bucket %s: got %d bytes of rows, want %d", size, bucket, len(got), len(want))
				}
				return err
			})
		})
		if err := errors.Join(err, db.Close()); err != nil {
			t.Fatal(err)
		}
	}
}

func TestFile_Status(t *testing.T) {
	f := open(t, write(t, 500, 50))
	status, err := f.Status(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if status.Revision != 1002 || status.TotalKey != 499 || status.Version != "3.7.0" || status.TotalSize <= 50_000 {
		t.Errorf("got %+v", status)
	}
	head, err := f.Head(t.Context())
	if want := (etcdbackup.Head{Index: 9, Term: 2, Compacted: 3, Storage: "3.7.0"}); err != nil || head != want {
		t.Errorf("got %+v, %v; want %+v", head, err, want)
	}
	members, err := f.Members(t.Context())
	if err != nil || len(members) != 1 || members[0].ID != 0xab || members[0].Name != "m1" {
		t.Errorf("got %+v, %v", members, err)
	}
}

// Ensure that what is no snapshot, and what was cut, is told from one that is sound.
func TestOpen_refused(t *testing.T) {
	whole, err := os.ReadFile(write(t, 100, 50))
	if err != nil {
		t.Fatal(err)
	}
	changed := bytes.Clone(whole)
	changed[len(changed)/2] ^= 1
	dir := t.TempDir()
	for name, row := range map[string]struct {
		content []byte
		want    error
	}{
		"empty":    {nil, etcdbackup.ErrNoDatabase},
		"text":     {bytes.Repeat([]byte("x"), 10_000), etcdbackup.ErrNoDatabase},
		"cut":      {whole[:len(whole)/2/4096*4096], etcdbackup.ErrDamaged},
		"changed":  {changed, etcdbackup.ErrHash},
		"unsealed": {whole[:len(whole)-sha256.Size], etcdbackup.ErrNoHash},
	} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, row.content, 0o600); err != nil {
			t.Fatal(err)
		}
		f, err := etcdbackup.Open(path)
		if err == nil {
			err = f.Verify(t.Context())
			_ = f.Close()
		}
		if !errors.Is(err, row.want) {
			t.Errorf("%s: got %v, want %v", name, err, row.want)
		}
	}
	if _, err := etcdbackup.Open(dir); err == nil {
		t.Error("a directory was opened")
	}
}

// smallFile is a database of few and small pages, one of them with overflow.
func smallFile(f *testing.F) []byte {
	f.Helper()
	name := filepath.Join(f.TempDir(), "small")
	db, err := bbolt.Open(name, 0o600, &bbolt.Options{PageSize: 512, InitialMmapSize: 4096})
	if err != nil {
		f.Fatal(err)
	}
	err = db.Update(func(tx *bbolt.Tx) error {
		keys, err := tx.CreateBucket([]byte("key"))
		for rev := byte(1); rev < 9 && err == nil; rev++ {
			err = keys.Put([]byte("\x00\x00\x00\x00\x00\x00\x00"+string(rune(rev))+"_\x00\x00\x00\x00\x00\x00\x00\x00"),
				append([]byte("\x0a\x01a\x10\x01\x18"+string(rune(rev))+"\x20\x01\x2a\x7f"), bytes.Repeat([]byte("v"), 127)...))
		}
		leases, created := tx.CreateBucket([]byte("lease"))
		return errors.Join(err, created, leases.Put([]byte("\x00\x00\x00\x00\x00\x00\x00\x07"), []byte("\x08\x07\x10\x3c")))
	})
	if err := errors.Join(err, db.Close()); err != nil {
		f.Fatal(err)
	}
	content, err := os.ReadFile(name)
	if err != nil {
		f.Fatal(err)
	}
	return content[:min(len(content), 8<<10)]
}

// FuzzFile reads a file with damage at one place, or anything else: an error at worst.
func FuzzFile(f *testing.F) {
	small := smallFile(f)
	f.Add(small, 0, uint64(0))
	for at := 0; at+8 < len(small); at += 37 {
		f.Add(small, at, ^uint64(0))
	}
	f.Fuzz(func(t *testing.T, content []byte, at int, with uint64) {
		content = bytes.Clone(content)
		for i := range 8 {
			if at >= 0 && at+i >= 0 && at+i < len(content) {
				content[at+i] ^= byte(with >> (8 * i))
			}
		}
		file, err := etcdbackup.OpenBytes(content)
		if err != nil {
			return
		}
		defer file.Close()
		_ = file.Verify(t.Context())
		_, _ = file.Status(t.Context())
		_, _ = file.Head(t.Context())
		_, _ = file.Users(t.Context(), 1<<20)
		_, _ = file.Members(t.Context())
		_, _ = file.HashKV(t.Context(), kv.Revision(at))
	})
}

// FuzzDecode reads single rows: what is taken obeys the laws that a store relies on.
func FuzzDecode(f *testing.F) {
	f.Add([]byte("\x00\x00\x00\x00\x00\x00\x00\x04_\x00\x00\x00\x00\x00\x00\x00\x00"), []byte("\x0a\x01a\x10\x04\x18\x04\x20\x01"))
	f.Add([]byte("\x00\x00\x00\x00\x00\x00\x00\x04_\x00\x00\x00\x00\x00\x00\x00\x00t"), []byte("\x0a\x01a"))
	f.Add([]byte("\x00\x00\x00\x00\x00\x00\x00\x07"), []byte("\x08\x07\x10\x3c"))
	f.Fuzz(func(t *testing.T, key, value []byte) {
		v, err := etcdbackup.DecodeVersion(key, value)
		if err == nil && !v.Bump && (len(v.KV.Key) == 0 || v.Rev.Main < 1 || v.Rev.Sub < 0 || v.Rev.Sub >= 1<<32 ||
			!v.Tombstone && (v.KV.CreateRevision < 1 || v.KV.CreateRevision > v.Rev.Main || v.KV.Version < 1)) {
			t.Errorf("took %+v", v)
		}
		id, ttl, err := etcdbackup.DecodeLease(key, value)
		if err == nil && (id == 0 || ttl < 1 || ttl > kv.MaxLeaseTTLSeconds) {
			t.Errorf("took lease %x for %d s", id, ttl)
		}
	})
}
