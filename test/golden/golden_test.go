package golden_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/quorate/quorate/internal/auth"
	"github.com/quorate/quorate/internal/base/level"
	"github.com/quorate/quorate/internal/config"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/kv/apply"
	"github.com/quorate/quorate/internal/kv/nextlevel"
	"github.com/quorate/quorate/internal/member/datadir"
	"github.com/quorate/quorate/internal/member/recovery"
	"github.com/quorate/quorate/internal/server"
	"github.com/quorate/quorate/internal/storage/files"
	"github.com/quorate/quorate/internal/storage/snapshot"
	"github.com/quorate/quorate/internal/storage/wal"
)

const (
	archives = "testdata/1.0"
	// limit bounds each wait for a member, on a slow machine.
	limit = time.Minute
)

// formsOf10 are the numbers of the forms that 1.0 has in a directory; the last one is that of Pebble's files.
var formsOf10 = []string{"boots quorate boots 1", "stores/CURRENT quorate store 1", "wal/*.wal QUORWAL 1",
	"stores/*/marker.format-version.* 024"}

// set is an archive, how it was made, and how its directory becomes that of a member that serves alone.
type set struct {
	name string
	make func(t *testing.T, dir string)
	// dump prints the contents of a copy.
	dump func(t *testing.T, dir string) string
	// ready prepares the start; nil: it is ready.
	ready func(t *testing.T, dir string)
	// founds says that the start founds a cluster, whose level rises as that of a new one.
	founds bool
	// password is that of the user root; empty: there are no users.
	password string
	// reads are keys that the member must serve, with their values.
	reads map[string]string
}

var sets = []set{
	{name: "member", make: makeMember, dump: dump, password: rootPassword,
		reads: map[string]string{"plain": "1", "zero\x00byte\x00\x00": "2", "alice/1": "8", "fast/1": "7", "after the base": "9"}},
	{name: "joint", make: makeJoint, dump: dump, ready: recoverAlone, reads: map[string]string{"plain": "1", "fast/0": "7"}},
	{name: "fast", make: makeFast, dump: dump, ready: recoverAlone, reads: map[string]string{"fast/0": "7", "fast/1": "7"}},
	{name: "recovered", make: makeRecovered, dump: dump, reads: map[string]string{"fast/0": "7", "fast/1": "7"}},
	{name: "restored", make: makeRestored, dump: dumpFounded, founds: true, password: "rootpw",
		reads: map[string]string{"a": "after", "leased": "x"}},
	{name: "backup", make: makeBackups, dump: dumpBackups, ready: restoreBackup, founds: true, password: rootPassword,
		reads: map[string]string{"plain": "1", "alice/1": "8"}},
}

// Ensure that what 1.0 wrote is read by today's build, that a member serves it, and that it writes the same forms.
func TestGolden(t *testing.T) {
	for i := range sets {
		s := &sets[i]
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			archive := filepath.Join(archives, s.name+".tar.gz")
			if _, err := os.Stat(archive); errors.Is(err, fs.ErrNotExist) && *rewrite {
				s.write(t, archive)
			}
			dir := t.TempDir()
			unpack(t, archive, dir)
			s.checkDump(t, dir)
			s.serve(t, archive)
		})
	}
}

// Ensure that today's build makes of the same entries what 1.0 made of them, to the sum over all of them: members of both builds
// may apply one log.
func TestGolden_madeAnew(t *testing.T) {
	for i := range sets {
		s := &sets[i]
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			s.make(t, dir)
			s.checkDump(t, dir)
		})
	}
}

// Ensure that a build which knows one level more applies the log of 1.0 as 1.0 does, and writes the same forms, as long as the
// level has not risen: its policy wants more time. Once an operator has raised it, this build refuses the directory, says why,
// and takes nothing from it.
func TestGolden_nextBuild(t *testing.T) {
	dir := t.TempDir()
	unpack(t, filepath.Join(archives, "member.tar.gz"), dir)
	next := place(dir)
	next.Apply.Level = nextlevel.Level
	checkText(t, "member", dumpBy(t, next))
	if got := forms(t, dir); !slices.Equal(got, formsOf10) {
		t.Errorf("below the level the next build has written %q, want %q", got, formsOf10)
	}
	data := opened(t, next)
	var errs []error
	for _, finalize := range []bool{false, true} {
		raise := kv.Command{Raise: &kv.RaiseOp{Level: nextlevel.Level, Finalize: finalize, Of: data.Machine.LevelView()},
			By: auth.Credentials{Member: true}}
		e := []consensus.Entry{{Index: data.Machine.Applied().Index + 1, Term: 2, Kind: consensus.EntryCommand, Payload: raise.Append(nil)}}
		must(t, data.WAL.Append(wal.Batch{Entries: e}))
		results, err := data.Machine.Apply(e)
		must(t, err)
		errs = append(errs, results[0].Err)
	}
	if l := data.Machine.ActiveLevel(); errs[0] != kv.ErrBadCommand || errs[1] != nil || l != nextlevel.Level {
		t.Errorf("before its time a rise ends with %v, on an operator's word with %v, and the level is %d", errs[0], errs[1], l)
	}
	left, boots := data.Machine.Chain(), data.Boots
	must(t, data.Close())

	_, err := datadir.Open(place(dir))
	if want := fmt.Sprintf("at feature level %d, and this build knows %d at most", nextlevel.Level, level.Own); err == nil ||
		!errors.Is(err, apply.ErrNewer) || datadir.Damaged(err) || !strings.Contains(err.Error(), want) {
		t.Errorf("a directory of a higher level is opened with %v", err)
	}
	data = opened(t, next)
	if now := data.Machine.Chain(); now != left || data.Boots != boots+1 {
		t.Errorf("after the refusal the directory holds %+v, opened %d times, want %+v and %d", now, data.Boots, left, boots+1)
	}
	must(t, data.Close())
}

// opened opens the directory of a member that is alone, and applies what its log holds: all of it is committed.
func opened(t *testing.T, options datadir.Options) *datadir.Data {
	t.Helper()
	data, err := datadir.Open(options)
	must(t, err)
	r := &data.Restored
	_, err = data.Machine.Apply(r.Entries[data.Machine.Applied().Index-r.Base.Position.Index:])
	must(t, err)
	return data
}

// Ensure that the archives have a log in which records are packed, entries go by name and segments follow each other, and values
// that lie apart: no dump of the contents shows it.
func TestGolden_forms(t *testing.T) {
	dir := t.TempDir()
	unpack(t, filepath.Join(archives, "member.tar.gz"), dir)
	var log strings.Builder
	must(t, wal.Dump(&log, files.Disk, filepath.Join(dir, "member", "wal"), nil))
	for _, form := range []string{", packed, ", ", by name", "forget ", "record ", "base ", "boots ", "mark "} {
		if !strings.Contains(log.String(), form) {
			t.Errorf("the log has no %q:\n%s", form, log.String())
		}
	}
	for _, pattern := range []string{"wal/*6.wal", "stores/1/*.blob", "stores/1/*.sst"} {
		if names, err := filepath.Glob(filepath.Join(dir, "member", pattern)); err != nil || len(names) == 0 {
			t.Errorf("the directory has no %s: %v", pattern, err)
		}
	}
}

// write makes the archive and its dump.
func (s *set) write(t *testing.T, archive string) {
	dir := t.TempDir()
	s.make(t, dir)
	pack(t, dir, archive)
	must(t, os.WriteFile(filepath.Join(archives, s.name+".txt"), []byte(s.dump(t, dir)), 0o644))
}

// checkDump compares the contents of a directory, which it changes, with those that the archive had.
func (s *set) checkDump(t *testing.T, dir string) {
	t.Helper()
	checkText(t, s.name, s.dump(t, dir))
}

func checkText(t *testing.T, name, text string) {
	t.Helper()
	want, err := os.ReadFile(filepath.Join(archives, name+".txt"))
	must(t, err)
	got, lines := strings.Split(text, "\n"), strings.Split(string(want), "\n")
	for i, line := range lines {
		if i >= len(got) || got[i] != line {
			t.Fatalf("line %d of the dump is %q, want %q", i+1, strings.Join(got[min(i, len(got)):min(i+1, len(got))], ""), line)
		}
	}
	if len(got) > len(lines) {
		t.Fatalf("the dump has %d lines more: %q", len(got)-len(lines), got[len(lines)])
	}
}

// serve starts a member on the archive, reads and writes, stops it, and checks what it left.
func (s *set) serve(t *testing.T, archive string) {
	t.Helper()
	dir := t.TempDir()
	unpack(t, archive, dir)
	if s.ready != nil {
		s.ready(t, dir)
	}
	if got := forms(t, dir); !s.founds && !slices.Equal(got, formsOf10) {
		t.Errorf("the directory has %q, want %q", got, formsOf10)
	}
	member := start(t, dir, s.founds)
	c := member.connect(s.password)
	ctx := bounded(t)
	if s.password != "" { // the archive has an alarm, which forbids to write
		_, err := c.AlarmDisarm(ctx, &clientv3.AlarmMember{})
		must(t, err)
	}
	for key, want := range s.reads {
		got, err := c.Get(ctx, key)
		if err != nil || len(got.Kvs) != 1 || string(got.Kvs[0].Value) != want {
			t.Errorf("key %q: got %v, %v, want %q", key, got, err, want)
		}
	}
	put, err := c.Put(ctx, "written today", strings.Repeat("w", 2000))
	must(t, err)
	must(t, c.Close())
	member.stop()

	if got := forms(t, dir); !slices.Equal(got, formsOf10) {
		t.Errorf("the directory has now %q, want %q: another form is for a higher level (docs/formats.md)", got, formsOf10)
	}
	s.checkLeft(t, dir, put.Header.Revision)
}

// checkLeft reads what the member left: the level that it had, and what was written.
func (s *set) checkLeft(t *testing.T, dir string, revision int64) {
	t.Helper()
	data := opened(t, place(dir))
	defer func() { must(t, data.Close()) }()
	found, err := data.Machine.Store().Get([]byte("written today"))
	if err != nil || found == nil || int64(found.ModRevision) != revision || len(found.Value) != 2000 {
		t.Errorf("what was written at revision %d: %v, %v", revision, found, err)
	}
	if l := data.Machine.ActiveLevel(); !s.founds && l != level.First {
		t.Errorf("the level is %d, and was %d", l, level.First)
	}
}

// member is a server on a directory.
type member struct {
	t      *testing.T
	server *server.Server
}

func start(t *testing.T, dir string, founds bool) *member {
	t.Helper()
	peer := founders().Members[0].PeerURLs[0]
	args := []string{"--name=m1", "--data-dir=" + dir, "--listen-client-urls=http://127.0.0.1:0",
		"--listen-peer-urls=http://127.0.0.1:0", "--initial-advertise-peer-urls=" + peer, "--heartbeat-interval=20",
		"--election-timeout=200"}
	if founds {
		args = append(args, "--initial-cluster=m1="+peer)
	}
	options, err := config.Load(args, nil)
	must(t, err)
	m := &member{t: t}
	m.server, err = server.Start(bounded(t), options, server.Options{Logger: slog.New(slog.DiscardHandler)})
	must(t, err)
	t.Cleanup(func() { _ = m.server.Stop(context.Background()) }) // if the test failed
	return m
}

func (m *member) endpoint() string { return m.server.ClientAddresses()[0].String() }

func (m *member) connect(password string) *clientv3.Client {
	m.t.Helper()
	options := clientv3.Config{Endpoints: []string{m.endpoint()}, Logger: zap.NewNop(), DialTimeout: limit}
	if password != "" {
		options.Username, options.Password = auth.RootUser, password
	}
	c, err := clientv3.New(options)
	must(m.t, err)
	return c
}

func (m *member) stop() {
	m.t.Helper()
	must(m.t, m.server.Stop(bounded(m.t)))
}

// recoverAlone makes a member of three the only voter, as `quorate recover` does.
func recoverAlone(t *testing.T, dir string) {
	t.Helper()
	survivor, err := recovery.Inspect(place(dir))
	must(t, err)
	plan, err := survivor.Plan(nil)
	must(t, err)
	must(t, plan.Write(place(dir)))
}

// dumpFounded prints a restored directory as its first start makes it.
func dumpFounded(t *testing.T, dir string) string {
	t.Helper()
	restored, err := datadir.ReadRestored(place(dir))
	must(t, err)
	whose := owner
	whose.Cluster = restored.Cluster
	first := consensus.Config{Voters: []consensus.MemberID{1}, Members: founders().Members[:1]}
	must(t, datadir.Create(place(dir), whose, first))
	return dump(t, dir)
}

// restoreBackup makes a directory from the file of a backup.
func restoreBackup(t *testing.T, dir string) { restoreFrom(t, filepath.Join(dir, "backup.db"), dir) }

// dumpBackups prints the contents of a backup that is restored, and of the stream of a snapshot that is installed.
func dumpBackups(t *testing.T, dir string) string {
	t.Helper()
	restoreBackup(t, dir)
	text := dumpFounded(t, dir)
	options := place(t.TempDir())
	stream, err := os.Open(filepath.Join(dir, "snapshot.stream"))
	must(t, err)
	received := filepath.Join(options.WorkDir(), "received")
	must(t, errors.Join(files.Disk.MkdirAll(filepath.Join(options.Dir, snapshot.StoresDir), 0o700),
		snapshot.Receive(files.Disk, stream, received), stream.Close(), snapshot.Stage(files.Disk, options.Dir, received, 2)))
	eng, err := options.OpenEngine(snapshot.StorePath(files.Disk, options.Dir, 2))
	must(t, err)
	m, err := apply.Open(eng, apply.Options{})
	must(t, err)
	d := &dumper{t: t}
	d.linef("snapshot of the store of %v", m.Owner())
	d.state(m)
	d.users(m)
	d.keys(m.Store(), 0)
	d.changes(m.Store())
	must(t, eng.Close())
	return text + d.text.String()
}
