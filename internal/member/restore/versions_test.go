package restore_test

import (
	"archive/tar"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/quorate/quorate/internal/kv/mvcc"
	"github.com/quorate/quorate/internal/member/datadir/datatest"
	"github.com/quorate/quorate/internal/member/restore"
	"github.com/quorate/quorate/internal/storage/etcdbackup"
)

// unpack writes the files of an archive that testdata/make made into a new directory.
func unpack(t *testing.T, archive string) string {
	t.Helper()
	f, err := os.Open(archive)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	content, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for files := tar.NewReader(content); ; {
		header, err := files.Next()
		if errors.Is(err, io.EOF) {
			return dir
		}
		if err != nil {
			t.Fatal(err)
		}
		name := filepath.Join(dir, header.Name)
		if header.Typeflag == tar.TypeDir {
			if err := os.MkdirAll(name, 0o700); err != nil {
				t.Fatal(err)
			}
			continue
		}
		b, err := io.ReadAll(files)
		if err := errors.Join(err, os.WriteFile(name, b, 0o600)); err != nil {
			t.Fatal(err)
		}
	}
}

// told is what the tools of the etcd that wrote a snapshot said of it.
func told(t *testing.T, dir string) (status etcdbackup.Status, hashKV uint32) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, "status.json"))
	if err != nil {
		t.Fatal(err)
	}
	hash, err := os.ReadFile(filepath.Join(dir, "hashkv"))
	if err != nil {
		t.Fatal(err)
	}
	_, scanned := fmt.Sscan(string(hash), &hashKV)
	if err := errors.Join(json.Unmarshal(text, &status), scanned); err != nil {
		t.Fatal(err)
	}
	return status, hashKV
}

// Ensure that what the newest etcd of each minor version wrote is read as that etcd reads it, and that a snapshot and the data
// directory of a stopped etcd with the same contents begin the same cluster.
func TestRun_versionsOfEtcd(t *testing.T) {
	archives, err := filepath.Glob("testdata/v*.tar.gz")
	if err != nil || len(archives) != 4 {
		t.Fatalf("got %v, %v; want one of each minor version, and that of 3.7.1, which is one of test/golden's", archives, err)
	}
	for _, archive := range archives {
		t.Run(strings.TrimSuffix(filepath.Base(archive), ".tar.gz"), func(t *testing.T) {
			dir := unpack(t, archive)
			snapshot, data := filepath.Join(dir, "snapshot.db"), filepath.Join(dir, "data")
			compareWithTools(t, dir, snapshot)
			if one, other := beginsAsWritten(t, snapshot), beginsAsWritten(t, data); one.Cluster != other.Cluster {
				t.Error("the snapshot and the directory have different contents")
			}
			etcd, err := restore.OpenEtcd(t.Context(), data, "")
			if err != nil {
				t.Fatal(err)
			}
			if len(etcd.Members) != 1 || etcd.Name != "m1" || etcd.Members[0].PeerURLs[0] != "http://127.0.0.1:42380" {
				t.Errorf("got %+v", etcd)
			}
			if err := etcd.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

func compareWithTools(t *testing.T, dir, snapshot string) {
	t.Helper()
	file, err := etcdbackup.Open(snapshot)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	want, wantHash := told(t, dir)
	want.TotalKey = 3 // etcdutl 3.5 counts all versions
	if got, err := file.Status(t.Context()); err != nil || got != want {
		t.Errorf("got %+v, %v; etcdutl said %+v", got, err, want)
	}
	if got, err := file.HashKV(t.Context(), 0); err != nil || got.Hash != wantHash || got.CompactRevision != 20 {
		t.Errorf("got %+v, %v; etcd said %d", got, err, wantHash)
	}
}

// beginsAsWritten restores what testdata/make wrote.
func beginsAsWritten(t *testing.T, from string) *restore.Result {
	t.Helper()
	options := datatest.Options()
	result, err := restore.Run(t.Context(), options, request(from, 1))
	if err != nil {
		t.Fatal(err)
	}
	if result.Revision != 38 || result.Compacted != 20 || result.Keys != 3 || result.Leases != 1 || result.Users != 2 ||
		result.Roles != 1 || !result.AuthEnabled || result.Alarms != 1 {
		t.Errorf("%s: got %+v", from, result)
	}
	data := start(t, options, 1)
	defer datatest.Close(t, data)
	store := data.Machine.Store()
	for key, want := range map[string]string{"a": "after", "t2": "y", "leased": "x", "b": "", "t1": ""} {
		got, err := store.Get([]byte(key))
		if err != nil || (got != nil) != (want != "") || got != nil && string(got.Value) != want {
			t.Errorf("%s: key %s is %v, %v; want %q", from, key, got, err, want)
		}
		if key == "a" && (got.CreateRevision != 2 || got.ModRevision != 37 || got.Version != 31) {
			t.Errorf("%s: got %+v", from, got)
		}
		if key == "leased" && !data.Machine.Leases().Exists(got.Lease) {
			t.Errorf("%s: the key of a lease has lease %x", from, got.Lease)
		}
	}
	if changes, _, err := store.EventsSince(mvcc.EventQuery{From: 21}); err != nil || len(changes) != 18 {
		t.Errorf("%s: got %d changes, %v", from, len(changes), err)
	}
	if u := data.Machine.Users(); !u.HasRole("alice", "some") || !u.HasRole("root", "root") {
		t.Errorf("%s: users %v", from, u.Users())
	}
	return result
}
