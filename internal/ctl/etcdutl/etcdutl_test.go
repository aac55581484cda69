package etcdutl_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/ctl/command"
	"github.com/quorate/quorate/internal/ctl/ctltest"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/storage/etcdbackup"
)

func run(t *testing.T, args ...string) ctltest.Result {
	t.Helper()
	return ctltest.Run(t, t.Context(), command.Streams{}, "", append([]string{"etcdutl"}, args...)...)
}

func TestHashKV(t *testing.T) {
	name := filepath.Join(t.TempDir(), "s.db")
	w, err := etcdbackup.Create(context.Background(), name, etcdbackup.Options{})
	if err != nil {
		t.Fatal(err)
	}
	one := kv.KeyValue{Key: []byte("a"), Value: []byte("1"), CreateRevision: 2, ModRevision: 2, Version: 1}
	err = errors.Join(w.Change(2, []kv.Event{{KV: one}}), w.Meta(&etcdbackup.Meta{Index: 9, Term: 2,
		Voters: []consensus.MemberID{1}, Storage: "3.7.0", Cluster: "3.7.1"}), w.Finish(), w.Close())
	if err != nil {
		t.Fatal(err)
	}
	run(t, "hashkv", name).Want(t, 0, "2587454935, 2, 0\n", "")
	run(t, "hashkv", name, "-w", "json").Want(t, 0, `{"hash":2587454935,"hashRevision":2,"compactRevision":0}`+"\n", "")
	run(t, "hashkv", name, "-w", "fields").Want(t, 0,
		"\"Hash\" : 2587454935\n\"Hash revision\" : 2\n\"Compact revision\" : 0\n", "")
	run(t, "hashkv", name, "-w", "table").Want(t, 0, "HASH        HASH REVISION  COMPACT REVISION\n2587454935  2              0\n", "")
	run(t, "hashkv", name, "-w", "xml").Want(t, command.StatusUsage, "", `"xml": choose simple, json, fields or table`)
	run(t, "hashkv", name, "--rev=3").Want(t, command.StatusRefused, "", "ends before revision 3")
	run(t, "hashkv", name+"x").Want(t, command.StatusRefused, "", "no such file")
	run(t, "hashkv", os.Args[0]).Want(t, command.StatusRefused, "", "no snapshot")
}

// Ensure that commands which change etcd's data directories change none, and say what to do instead.
func TestDataDirectories(t *testing.T) {
	place := func(path string) string {
		dir := t.TempDir()
		file := filepath.Join(dir, path)
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o700), os.WriteFile(file, nil, 0o600)); err != nil {
			t.Fatal(err)
		}
		return dir
	}
	ours, theirs, other := place("member/stores/CURRENT"), place("member/snap/db"), place("x")
	for _, row := range []struct {
		dir    string
		status int
		want   string
	}{
		{ours, 0, "needs no defragmentation"},
		{theirs, command.StatusRefused, "is a data directory of etcd"},
		{other, command.StatusRefused, "is no data directory"},
		{other + "/none", command.StatusRefused, "no such file"},
		{"", command.StatusUsage, "--data-dir is missing"},
	} {
		run(t, "defrag", "--data-dir="+row.dir).Want(t, row.status, "", row.want)
	}
	run(t, "migrate", "--data-dir="+ours, "--target-version=3.7").Want(t, 0, "", "storage version up-to-date")
	run(t, "migrate", "--data-dir="+ours, "--target-version=3.6").Want(t, command.StatusRefused, "", "`quorate snapshot save`")
	run(t, "migrate", "--data-dir="+ours, "--target-version=3.7", "--force").Want(t, command.StatusRefused, "", "no version")
	run(t, "migrate", "--data-dir="+theirs, "--target-version=3.7").Want(t, command.StatusRefused, "", "data directory of etcd")
	run(t, "version").Want(t, 0, "etcdutl version: 3.7.3\nAPI version: 3.7\n", "")
}
