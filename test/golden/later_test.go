package golden_test

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/quorate/quorate/internal/base/level"
	"github.com/quorate/quorate/internal/config"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/member/datadir"
	"github.com/quorate/quorate/internal/server"
	"github.com/quorate/quorate/internal/storage/durable"
	"github.com/quorate/quorate/internal/storage/engine"
	"github.com/quorate/quorate/internal/storage/files"
	"github.com/quorate/quorate/internal/storage/wal"
)

// tree is the SHA-256 over the names, kinds and contents of all that is in a directory.
func tree(t *testing.T, dir string) string {
	t.Helper()
	sum := sha256.New()
	must(t, filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		fmt.Fprintf(sum, "%q %v\n", strings.TrimPrefix(path, dir), entry.Type())
		if entry.IsDir() {
			return nil
		}
		content, err := os.ReadFile(path)
		fmt.Fprintf(sum, "%d %x\n", len(content), sha256.Sum256(content))
		return err
	}))
	return hex.EncodeToString(sum.Sum(nil))
}

// setRow writes a row of a member's store, as a later build would.
func setRow(t *testing.T, dir, key, value string) {
	t.Helper()
	eng, err := engine.Open(engine.Options{FS: files.Disk, Dir: filepath.Join(dir, "member/stores/1")})
	must(t, err)
	batch := eng.NewBatch()
	batch.Set([]byte(key), []byte(value))
	must(t, errors.Join(batch.Commit(), batch.Close(), eng.Flush(), eng.Close()))
}

// appendEntry puts an entry at the end of a member's log.
func appendEntry(t *testing.T, dir string, e consensus.Entry) {
	t.Helper()
	options := place(dir)
	log, found, err := wal.Open(options.WAL())
	must(t, err)
	e.Index, e.Term = found.Last().Index+1, found.Last().Term
	must(t, errors.Join(log.Append(wal.Batch{Entries: []consensus.Entry{e}}), log.Close()))
}

// laterForms are the numbers of a directory by which a build knows that a later one wrote it, each with how that one would.
var laterForms = map[string]func(t *testing.T, dir string){
	"segment of the log": func(t *testing.T, dir string) {
		names, err := filepath.Glob(filepath.Join(dir, "member/wal/*.wal"))
		must(t, err)
		content, err := os.ReadFile(names[len(names)-1])
		must(t, err)
		content[8] = 3 // 2 is a log whose records are sealed
		must(t, os.WriteFile(names[len(names)-1], content, 0o600))
	},
	"item of the log": func(t *testing.T, dir string) {
		appendEntry(t, dir, consensus.Entry{Kind: consensus.EntryAbort + 1})
	},
	"configuration in the log": func(t *testing.T, dir string) {
		appendEntry(t, dir, consensus.Entry{Kind: consensus.EntryConfig, Payload: []byte{2, 9, 9}})
	},
	"store":          func(t *testing.T, dir string) { setRow(t, dir, "\x00quorate/format", "2") },
	"level":          func(t *testing.T, dir string) { setRow(t, dir, "si", string([]byte{byte(level.Own) + 1, 9})) },
	"boots":          func(t *testing.T, dir string) { sealed(t, dir, "boots", "quorate boots 2\nwhatever\n") },
	"current store":  func(t *testing.T, dir string) { sealed(t, dir, "stores/CURRENT", "quorate store 2\nwhatever\n") },
	"files of store": laterMarker,
}

func sealed(t *testing.T, dir, name, text string) {
	t.Helper()
	must(t, durable.WriteSealed(files.Disk, filepath.Join(dir, "member", name), text))
}

func laterMarker(t *testing.T, dir string) {
	names, err := filepath.Glob(filepath.Join(dir, "member/stores/1/marker.format-version.*"))
	must(t, err)
	must(t, os.Rename(names[0], strings.TrimSuffix(names[0], "024")+"099"))
}

// Ensure that a start on a directory of a later build, whichever of its numbers says so, changes no byte of it, leaves no file,
// and says which build to start. One that a member used before has a lock file, and one that was copied may have none.
func TestGolden_laterBuild(t *testing.T) {
	for _, name := range []string{"peers", "lost", "founding", "dropped", "forced", "addresses", "restored"} {
		later := 2
		if name == "restored" {
			later = 3 // this build writes 2 for contents that need a feature level
		}
		laterForms["file "+name] = func(t *testing.T, dir string) { sealed(t, dir, name, fmt.Sprintf("quorate %s %d\n?\n", name, later)) }
	}
	for name, edit := range laterForms {
		for _, locked := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, locked before: %t", name, locked), func(t *testing.T) {
				dir := t.TempDir()
				unpack(t, filepath.Join(archives, "recovered.tar.gz"), dir)
				must(t, os.MkdirAll(filepath.Join(dir, "member/snapshots/1"), 0o700))
				must(t, os.WriteFile(filepath.Join(dir, "member/snapshots/1/SNAPSHOT"), []byte("QRTSNAP\n\x02"), 0o600))
				must(t, os.MkdirAll(filepath.Join(dir, "member/stores/7"), 0o700))
				edit(t, dir)
				if locked {
					must(t, os.WriteFile(filepath.Join(dir, "LOCK"), nil, 0o600))
				}
				before := tree(t, dir)
				refused(t, dir, locked || !strings.HasSuffix(name, "the log") || name == "segment of the log", before)
			})
		}
	}
}

// refused starts a member, which must fail. An item of the log is found under the lock only, so that its file may be new.
func refused(t *testing.T, dir string, whole bool, before string) {
	t.Helper()
	options, err := config.Load([]string{"--name=m1", "--data-dir=" + dir, "--listen-client-urls=http://127.0.0.1:0",
		"--listen-peer-urls=http://127.0.0.1:0"}, nil)
	must(t, err)
	s, err := server.Start(bounded(t), options, server.Options{Logger: slog.New(slog.DiscardHandler)})
	if err == nil {
		must(t, s.Stop(bounded(t)))
		t.Fatal("it starts")
	}
	if !errors.Is(err, datadir.ErrNewerBuild) || datadir.Damaged(err) ||
		!strings.Contains(err.Error(), "start this member with that build") {
		t.Errorf("it is refused with: %v", err)
	}
	if !whole {
		must(t, os.Remove(filepath.Join(dir, "LOCK")))
	}
	if after := tree(t, dir); after != before {
		t.Errorf("the directory is another one after the refusal: %v", err)
	}
}
