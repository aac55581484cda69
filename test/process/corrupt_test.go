package process_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"

	"github.com/quorate/quorate/internal/storage/engine"
	"github.com/quorate/quorate/internal/storage/files"
)

// damageStore changes one bit of the value that a stopped member holds of a key. No checksum notices: it is written as the
// member itself would write.
func damageStore(t *testing.T, n *node, key string) {
	t.Helper()
	dirs, err := filepath.Glob(filepath.Join(n.dir, "member", "stores", "[0-9]*"))
	if err != nil || len(dirs) != 1 {
		t.Fatalf("stores of %s: %v, %v", n.name, dirs, err)
	}
	store, err := engine.Open(engine.Options{FS: files.Disk, Dir: dirs[0]})
	if err != nil {
		t.Fatal(err)
	}
	it, err := store.NewIter([]byte{engine.VersionedTable}, []byte{engine.VersionedTable + 1})
	if err != nil {
		t.Fatal(err)
	}
	batch := store.NewBatch()
	found := 0
	for valid := it.First(); valid; valid = it.Next() {
		if row := it.Key(); bytes.HasPrefix(row[1:], []byte(key)) {
			value := bytes.Clone(it.Value())
			value[len(value)-1] ^= 1
			batch.Set(bytes.Clone(row), value)
			found++
		}
	}
	err = errors.Join(it.Close(), batch.Commit(), batch.Close(), store.Flush(), store.Close())
	if err != nil || found == 0 {
		t.Fatalf("%d rows changed in the store of %s: %v", found, n.name, err)
	}
}

// corrupt returns the members that have the alarm.
func (e *elastic) corrupt(ctx context.Context) (ids []uint64, err error) {
	alarms, err := e.client.AlarmList(ctx)
	if err != nil {
		return nil, err
	}
	for _, a := range alarms.Alarms {
		if a.Alarm == pb.AlarmType_CORRUPT {
			ids = append(ids, a.MemberID)
		}
	}
	return ids, nil
}

// checkHashes compares the contents of all members at one revision.
func (e *elastic) checkHashes() {
	e.t.Helper()
	e.alike()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	now, err := e.client.Get(ctx, "x")
	if err != nil {
		e.t.Fatal(err)
	}
	var hashes []uint32
	for _, n := range e.nodes {
		until(e.t, n.name+" has applied all, and tells its hash", func(context.Context) bool {
			hash, err := e.client.HashKV(ctx, n.client, now.Header.Revision)
			if err == nil {
				hashes = append(hashes, hash.Hash)
			}
			return err == nil
		})
	}
	if slices.Min(hashes) != slices.Max(hashes) {
		e.t.Errorf("members differ: %x", hashes)
	}
}

// TestCorrupt damages the store of one member of three. It gets the alarm, serves nothing and does not lead; the others go on. Each
// of the two cures that the documents name ends the alarm, and all members are alike.
func TestCorrupt(t *testing.T) {
	t.Parallel()
	e := startVoters(t, 3, "--corrupt-check-time=1s")
	cures := []struct {
		name string
		cure func(sick *node)
	}{
		{"an empty directory and member reset", func(sick *node) {
			command := e.begin(e.member("reset", sick.name, "--yes")...)
			e.launch(sick, "existing")
			e.finish(command, 0, "done in ")
		}},
		{"an empty directory and --join --replaces", func(sick *node) {
			e.run(sick, e.joining(sick, "http://"+e.others(sick)[0].peer, "--replaces="+sick.name)...)
		}},
	}
	for _, row := range cures {
		t.Log(row.name)
		ctx, cancel := context.WithTimeout(context.Background(), 3*patience)
		if _, err := e.client.Put(ctx, "damaged", "value"); err != nil {
			t.Fatal(err)
		}
		e.alike()
		sick := e.others(e.leader())[0]
		id := e.status(sick).Header.MemberId
		if _, err := e.client.Defragment(ctx, sick.client); err != nil { // it flushes
			t.Fatal(err)
		}
		sick.kill()
		damageStore(t, sick, "damaged")
		e.launch(sick, "existing")
		until(t, "the alarm", func(ctx context.Context) bool {
			ids, err := e.corrupt(ctx)
			return err == nil && slices.Equal(ids, []uint64{id})
		})
		e.quorate(0, e.member("list"), "marked corrupt")
		e.quorate(1, e.member("reset", sick.name, "--yes"), "is marked corrupt and still runs: stop it")
		if err := e.moveLeader(sick); err == nil || !strings.Contains(err.Error(), "marked corrupt") {
			t.Errorf("leadership for the corrupt member: %v", err)
		}
		own := e.quiet(sick)
		if _, err := own.Get(ctx, "damaged"); !errors.Is(err, rpctypes.ErrCorrupt) {
			t.Errorf("a read through it: %v, want %v", err, rpctypes.ErrCorrupt)
		}
		_ = own.Close()
		e.checkServes(e.leader())

		sick.kill()
		if err := os.Rename(sick.dir, sick.dir+".aside."+row.name[len(row.name)-5:]); err != nil {
			t.Fatal(err)
		}
		row.cure(sick)
		e.waitReady(sick)
		e.checkVoters()
		until(t, "the alarm is gone", func(ctx context.Context) bool {
			ids, err := e.corrupt(ctx)
			return err == nil && len(ids) == 0
		})
		e.checkHashes()
		e.checkServes(sick)
		cancel()
	}
}
