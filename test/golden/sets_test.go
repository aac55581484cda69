package golden_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/ctl"
	"github.com/quorate/quorate/internal/ctl/command"
	"github.com/quorate/quorate/internal/identity"
	"github.com/quorate/quorate/internal/member/datadir"
	"github.com/quorate/quorate/internal/member/restore"
	"github.com/quorate/quorate/internal/storage/engine"
	"github.com/quorate/quorate/internal/storage/files"
	"github.com/quorate/quorate/internal/storage/snapshot"
	"github.com/quorate/quorate/internal/storage/wal"
)

// place is the data of a member below the directory of --data-dir.
func place(dir string) datadir.Options {
	return datadir.Options{
		FS: files.Disk, Dir: filepath.Join(dir, "member"), SegmentBytes: 4 << 10, Logger: slog.New(slog.DiscardHandler),
		Nonce: func() uint64 { return 1 },
		OpenEngine: func(dir string) (engine.Engine, error) {
			return engine.Open(engine.Options{FS: files.Disk, Dir: dir, Logger: slog.New(slog.DiscardHandler)})
		},
	}
}

// maker makes the directory of a member, entry by entry.
type maker struct {
	*script
	t       *testing.T
	data    *datadir.Data
	logged  int
	applied int
}

func newMaker(t *testing.T, dir string) *maker {
	must(t, datadir.Create(place(dir), owner, founders()))
	data, err := datadir.Open(place(dir))
	must(t, err)
	return &maker{script: newScript(), t: t, data: data}
}

// log writes what was added to the script, a few entries with each sync, and that entries up to commit are committed.
func (m *maker) log(commit int) {
	for m.logged < len(m.entries) {
		end := min(m.logged+10, len(m.entries))
		must(m.t, m.data.WAL.Append(wal.Batch{Entries: m.entries[m.logged:end],
			Hard: &consensus.HardState{Term: 2, Vote: 1, Commit: consensus.Index(min(end, commit))}}))
		m.logged = end
	}
}

// apply applies entries up to end, and makes the store durable.
func (m *maker) apply(end int) {
	for m.applied < end {
		next := min(m.applied+10, end)
		applyAll(m.t, m.data.Machine, m.entries[m.applied:next])
		m.applied = next
	}
	for done := false; !done; {
		var err error
		done, err = m.data.Machine.Store().CompactStep(100)
		must(m.t, err)
	}
	must(m.t, m.data.Engine.Flush())
}

// hold keeps witness records, or forgets them.
func (m *maker) hold(forget bool, records ...consensus.Record) {
	var changes []consensus.RecordChange
	for _, record := range records {
		changes = append(changes, consensus.RecordChange{Record: record, Forget: forget})
	}
	must(m.t, m.data.WAL.Append(wal.Batch{Witness: consensus.WitnessRecords(changes)}))
}

// history logs and applies what all directories begin with, and frees the first segments of the log.
func (m *maker) history() {
	m.begin(true)
	m.log(len(m.entries))
	m.apply(len(m.entries))
	base := m.data.Machine.SnapshotMeta()
	m.put("after the base", "9", 0)
	m.log(len(m.entries))
	must(m.t, m.data.WAL.Compact(base))
	m.apply(len(m.entries))
}

// makeMember makes a member that is alone after a joint change, with users, an upgrade under way and an alarm. The store lacks
// the end of the log.
func makeMember(t *testing.T, dir string) {
	m := newMaker(t, dir)
	m.history()
	held := m.fast(uint64(m.data.Machine.Store().Revision()) + 1)
	m.hold(false, held...)
	m.log(len(m.entries))
	m.join(1)
	m.log(len(m.entries))
	m.leave()
	m.apply(len(m.entries))
	m.hold(true, held[0])
	m.end(true)
	m.log(len(m.entries))
	must(t, m.data.Close())
}

// makeJoint makes a member of three whose log ends with a joint configuration that has not committed.
func makeJoint(t *testing.T, dir string) {
	m := newMaker(t, dir)
	m.history()
	m.hold(false, m.fast(uint64(m.data.Machine.Store().Revision())+1)...)
	committed := len(m.entries)
	m.join(1)
	m.log(committed)
	m.apply(committed)
	must(t, m.data.Close())
}

// makeFast makes a member of three which holds two writes of the fast path that are in no log, and what it knows of others.
func makeFast(t *testing.T, dir string) {
	m := newMaker(t, dir)
	m.history()
	m.hold(false, m.fast(uint64(m.data.Machine.Store().Revision())+1)...)
	must(t, m.data.WriteSeenPeers([]identity.Seen{{Member: 2, Storage: founders().Members[1].Storage, Life: consensus.Life{Boots: 3}}}))
	must(t, m.data.Close())
	must(t, datadir.WriteAddresses(place(dir), []datadir.Address{{Member: 3, URLs: []string{"http://127.0.0.1:2393"},
		Config: consensus.FoundingID(), Instead: founders().Members[2].PeerURLs}}))
}

// makeRecovered makes the member that remains of makeFast's three: it is in the next epoch.
func makeRecovered(t *testing.T, dir string) {
	makeFast(t, dir)
	recoverAlone(t, dir)
}

// makeRestored makes a directory from a backup of etcd 3.7, as before its first start.
func makeRestored(t *testing.T, dir string) {
	from := t.TempDir()
	unpack(t, "../../internal/member/restore/testdata/v3.7.1.tar.gz", from)
	restoreFrom(t, filepath.Join(from, "snapshot.db"), dir)
}

func restoreFrom(t *testing.T, backup, dir string) {
	t.Helper()
	_, err := restore.Run(t.Context(), place(dir), &restore.Request{File: backup, Name: "m1", Self: 1,
		Members: founders().Members[:1]})
	must(t, err)
}

// makeBackups makes a file by `quorate snapshot save`, and the stream of a snapshot between members, of the member's archive.
func makeBackups(t *testing.T, dir string) {
	source := t.TempDir()
	makeMember(t, source)
	options := place(source)
	data, err := datadir.Open(options)
	must(t, err)
	must(t, snapshot.Build(data.Engine.Checkpoint, files.Disk, options.WorkDir()))
	var stream bytes.Buffer
	must(t, errors.Join(snapshot.Write(&stream, files.Disk, options.WorkDir()), data.Close(), files.Disk.RemoveAll(options.WorkDir())))
	must(t, os.WriteFile(filepath.Join(dir, "snapshot.stream"), stream.Bytes(), 0o600))
	server := start(t, source, false)
	var out, wrong bytes.Buffer
	status := ctl.Run(t.Context(), []string{"snapshot", "save", filepath.Join(dir, "backup.db"), "--endpoints", server.endpoint(),
		"--user", "root:" + rootPassword}, command.Streams{Out: &out, Err: &wrong})
	if status != command.StatusOK {
		t.Fatalf("the backup ends with status %d: %s", status, wrong.String())
	}
	server.stop()
}

// pack makes an archive of a directory, whose bytes depend on nothing but contents and names.
func pack(t *testing.T, dir, archive string) {
	t.Helper()
	var buffer bytes.Buffer
	packed, err := gzip.NewWriterLevel(&buffer, gzip.BestCompression)
	must(t, err)
	out := tar.NewWriter(packed)
	must(t, filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error { // in the order of names
		if err != nil || path == dir {
			return err
		}
		header := &tar.Header{Name: filepath.ToSlash(strings.TrimPrefix(path, dir+string(filepath.Separator))), Mode: 0o700,
			Format: tar.FormatUSTAR}
		if entry.IsDir() {
			header.Typeflag, header.Name = tar.TypeDir, header.Name+"/"
			return out.WriteHeader(header)
		}
		content, err := os.ReadFile(path)
		header.Mode, header.Size = 0o600, int64(len(content))
		if err = errors.Join(err, out.WriteHeader(header)); err == nil {
			_, err = out.Write(content)
		}
		return err
	}))
	must(t, errors.Join(out.Close(), packed.Close(), os.WriteFile(archive, buffer.Bytes(), 0o644)))
}

// unpack puts the files of an archive into a directory.
func unpack(t *testing.T, archive, dir string) {
	t.Helper()
	content, err := os.ReadFile(archive)
	must(t, err)
	packed, err := gzip.NewReader(bytes.NewReader(content))
	must(t, err)
	in := tar.NewReader(packed)
	for {
		header, err := in.Next()
		if errors.Is(err, io.EOF) {
			return
		}
		must(t, err)
		path := filepath.Join(dir, filepath.FromSlash(header.Name))
		if header.Typeflag == tar.TypeDir {
			must(t, os.MkdirAll(path, 0o700))
			continue
		}
		content, err := io.ReadAll(in)
		must(t, errors.Join(err, os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, content, 0o600)))
	}
}

// forms are the numbers of all forms in the directory of a member: of the boots file, the record of the store, each segment of
// the log, and the files of the engine.
func forms(t *testing.T, dir string) (found []string) {
	t.Helper()
	add := func(pattern string, of func(name string, content []byte) string) {
		names, err := filepath.Glob(filepath.Join(dir, "member", pattern))
		must(t, err)
		for _, name := range names {
			content, err := os.ReadFile(name)
			must(t, err)
			if form := pattern + " " + of(filepath.Base(name), content); !slices.Contains(found, form) {
				found = append(found, form)
			}
		}
	}
	firstLine := func(_ string, content []byte) string { return string(content[:bytes.IndexByte(content, '\n')]) }
	add("boots", firstLine)
	add("stores/CURRENT", firstLine)
	add("wal/*.wal", func(_ string, content []byte) string { return string(content[:7]) + " " + string('0'+content[8]) })
	add("stores/*/marker.format-version.*", func(name string, _ []byte) string { return name[strings.LastIndex(name, ".")+1:] })
	return found
}

// context with a bound for what waits for a member.
func bounded(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	t.Cleanup(cancel)
	return ctx
}
