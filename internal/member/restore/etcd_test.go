package restore_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/member/datadir"
	"github.com/quorate/quorate/internal/member/datadir/datatest"
	"github.com/quorate/quorate/internal/member/restore"
	"github.com/quorate/quorate/internal/storage/etcdbackup"
	"github.com/quorate/quorate/internal/storage/etcdlog/logtest"
)

// etcdDir is a data directory that an etcd of two members left; its database has the entries up to 70.
func etcdDir(t *testing.T, log *logtest.Log, more ...etcdbackup.Member) string {
	t.Helper()
	dir := t.TempDir()
	file := backup(t, func(w *etcdbackup.Writer) error {
		var err error
		for _, m := range append([]etcdbackup.Member{{ID: 2, Name: "m2", PeerURLs: []string{"http://b:1"}},
			{ID: 1, Name: "m1", PeerURLs: []string{"http://a:1"}}}, more...) {
			err = errors.Join(err, w.Member(&m))
		}
		return err
	})
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	database := restore.DatabasePath(dir)
	if err := os.MkdirAll(filepath.Dir(database), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(database, content[:len(content)-32], 0o600); err != nil {
		t.Fatal(err)
	}
	if log != nil {
		log.Write(t, filepath.Join(dir, "member", "wal"))
	}
	return dir
}

func TestOpenEtcd(t *testing.T) {
	write := &pb.InternalRaftRequest{Put: &pb.PutRequest{Key: []byte("a")}}
	for name, row := range map[string]struct {
		log  *logtest.Log
		want string
	}{
		"stopped in order": {logtest.New(1, 9).Entry(70, 0, write).State(70), ""},
		"killed":           {logtest.New(1, 9).Entry(70, 0, write).Entry(71, 0, write).State(70), "lacks writes that its log has (1, after entry 70"},
		"with a snapshot":  {logtest.New(1, 9).Snapshot(80).State(80), "lacks writes"},
		"of nobody here":   {logtest.New(3, 9).Entry(70, 0, write), "which is not among the members"},
		"no log":           {nil, "--from-wal-dir"},
	} {
		etcd, err := restore.OpenEtcd(t.Context(), etcdDir(t, row.log), "")
		switch {
		case row.want != "":
			if err == nil || !strings.Contains(err.Error(), row.want) {
				t.Errorf("%s: got %v, want %q", name, err, row.want)
			}
		case err != nil:
			t.Errorf("%s: %v", name, err)
		default:
			if etcd.Self != 1 || etcd.Name != "m1" || len(etcd.Members) != 2 || etcd.Members[1].PeerURLs[0] != "http://b:1" {
				t.Errorf("%s: got %+v", name, etcd)
			}
			if err := etcd.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}

// Ensure that a learner is named, though only members that ran have a name.
func TestOpenEtcd_learner(t *testing.T) {
	learner := etcdbackup.Member{ID: 0xab, IsLearner: true, PeerURLs: []string{"http://c:1"}}
	_, err := restore.OpenEtcd(t.Context(), etcdDir(t, logtest.New(1, 9).Entry(70, 0, nil), learner), "")
	if err == nil || !strings.Contains(err.Error(), "member ab (http://c:1) is a learner") {
		t.Errorf("got %v", err)
	}
}

// Ensure that the data of an etcd is moved aside only when everything else is done, and that a crash between the two renames is
// made good.
func TestEtcd_TakeOver(t *testing.T) {
	dir := etcdDir(t, logtest.New(1, 9).Entry(70, 0, nil))
	for _, crash := range []bool{false, true} {
		options := datatest.Options()
		if err := options.FS.MkdirAll(options.Dir, 0o700); err != nil {
			t.Fatal(err)
		}
		etcd, err := restore.OpenEtcd(t.Context(), dir, "")
		if err != nil {
			t.Fatal(err)
		}
		result, err := etcd.TakeOver(t.Context(), options, "aside")
		if err != nil || result.Revision != 6 || result.Keys != 3 {
			t.Fatalf("got %+v, %v", result, err)
		}
		if err := etcd.Close(); err != nil {
			t.Fatal(err)
		}
		if _, err := options.FS.Stat("aside"); err != nil {
			t.Error(err)
		}
		if crash {
			if err := options.FS.Rename(options.Dir, options.Dir+".partial"); err != nil {
				t.Fatal(err)
			}
			if err := datadir.FinishRestore(options); err != nil {
				t.Fatal(err)
			}
		}
		data := start(t, options, 1)
		if config, _ := data.Machine.Config(); len(config.Members) != 2 || config.Members[0].ID != consensus.MemberID(1) {
			t.Errorf("members %v", config.Members)
		}
		datatest.Close(t, data)
	}
}

// Ensure that members restored from files that differ only in how far a compaction has come are of one cluster.
func TestRun_compactionUnderWay(t *testing.T) {
	whole := history
	defer func() { history = whole }()
	before := run(t, backup(t, nil), 0)
	history = append([]revision{{1, []kv.Event{put("old", "0", 1, 1, 1, 0)}}}, whole...)
	if after := run(t, backup(t, nil), 0); after.Cluster != before.Cluster {
		t.Error("a version that the compaction is about to delete made a difference")
	}
}
