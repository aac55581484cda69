package process_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

const (
	filledKeys   = 5
	filledRounds = 5
	filledAtOnce = 1 << 20 // altogether more than the 16 MiB of one segment of the log, by more than 5
)

// noise is what a seed makes of so many letters, which do not become fewer when they are packed.
func noise(seed string, letters int) string {
	sum := fnv.New64a()
	_, _ = sum.Write([]byte(seed))
	random, text := rand.New(rand.NewPCG(sum.Sum64(), 0)), make([]byte, 0, letters+8)
	for len(text) < letters {
		text = binary.LittleEndian.AppendUint64(text, random.Uint64())
	}
	return string(text[:letters])
}

// fill makes data of two log segments and several tables.
func fill(t *testing.T, binary, dir string) {
	t.Helper()
	s := newSingle(t, binary, dir)
	client := s.up()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	for i := range filledKeys * filledRounds {
		value := fmt.Sprint(i) + "z" + noise(fmt.Sprint(i), filledAtOnce)
		if _, err := client.Put(ctx, fmt.Sprint("key", i%filledKeys), value); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := client.Defragment(ctx, s.client); err != nil { // flushes: the store is ahead of the first segment
		t.Fatal(err)
	}
	s.kill()
	// A start and its end prove the end of the log durable: from here on nothing may be missing unnoticed.
	s.up()
	s.kill()
}

func checkFilled(t *testing.T, client *clientv3.Client) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	for k := range filledKeys {
		got, err := client.Get(ctx, fmt.Sprint("key", k))
		if err != nil {
			t.Fatal(err)
		}
		want := fmt.Sprint((filledRounds-1)*filledKeys+k) + "z"
		if len(got.Kvs) != 1 || !strings.HasPrefix(string(got.Kvs[0].Value), want) {
			t.Errorf("key%d: got %d keys, want a value that begins with %s", k, len(got.Kvs), want)
		}
	}
}

// pick finds the file or directory to be spoilt; a pattern that matches nothing names what is to be made.
func pick(t *testing.T, dir, pattern string, first bool) string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(dir, pattern))
	switch {
	case err != nil:
		t.Fatal(err)
	case len(found) == 0 && strings.Contains(pattern, "*"):
		t.Fatalf("no %s in %s", pattern, dir)
	case len(found) == 0:
		return filepath.Join(dir, pattern)
	case first:
		return found[0]
	}
	return found[len(found)-1]
}

// restore puts what was kept back in place, and removes what was put there instead.
func restore(t *testing.T, kept, path string) {
	t.Helper()
	if err := os.RemoveAll(path); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(kept); err == nil {
		if err := os.Rename(kept, path); err != nil {
			t.Fatal(err)
		}
	}
	for _, pattern := range []string{"marker.manifest.x", "marker.format-version.000099.999"} {
		if err := os.RemoveAll(filepath.Join(filepath.Dir(path), pattern)); err != nil {
			t.Fatal(err)
		}
	}
}

// precious lists the files that only a working member may remove: the log and the tables.
func precious(t *testing.T, dir string) (names []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, _ os.DirEntry, err error) error {
		if strings.HasSuffix(path, ".wal") || strings.HasSuffix(path, ".sst") {
			names = append(names, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}

// copyTree copies a file or a directory.
func copyTree(t *testing.T, from, to string) {
	t.Helper()
	err := filepath.WalkDir(from, func(path string, entry os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		target := filepath.Join(to, strings.TrimPrefix(path, from))
		if entry.IsDir() {
			return os.MkdirAll(target, 0o700)
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(target, content, 0o600)
	})
	if err != nil {
		t.Fatal(err)
	}
}
