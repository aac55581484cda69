package objects_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/quorate/quorate/internal/backup"
	"github.com/quorate/quorate/internal/consensus"
)

// quorate runs a command with the credentials of the place, and returns its exit status and all that it says.
func (f *fleet) quorate(args ...string) (status int, said string) {
	f.t.Helper()
	cmd := exec.CommandContext(f.ctx, f.binary, args...)
	cmd.Env = append(os.Environ(), f.env...)
	out, err := cmd.CombinedOutput()
	var ended *exec.ExitError
	if err != nil && !errors.As(err, &ended) {
		f.t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), string(out)
}

// objects returns the files of objects below a prefix, in order of their names.
func (f *fleet) objects(prefix, kind string) (all []string) {
	f.t.Helper()
	err := filepath.WalkDir(filepath.Join(f.bucket, prefix, kind), func(path string, e os.DirEntry, err error) error {
		if err == nil && e.Type().IsRegular() {
			all = append(all, path)
		}
		return err
	})
	if err != nil {
		f.t.Fatal(err)
	}
	slices.Sort(all)
	return all
}

// flipFile changes a byte in the middle of a file.
func (f *fleet) flipFile(path string) {
	f.t.Helper()
	content, err := os.ReadFile(path)
	if err == nil {
		err = os.WriteFile(path, flip(content), 0o600)
	}
	if err != nil {
		f.t.Fatal(err)
	}
}

// nextBase waits until a base is there that is newer than a revision, and returns how long that took.
func (f *fleet) nextBase(revision int64) time.Duration {
	f.t.Helper()
	begun := time.Now()
	f.until("a newer base", func() error {
		got, err := f.status()
		if err == nil && got.GetBase().GetRevision() <= revision {
			err = fmt.Errorf("%w: %v", errBehind, got)
		}
		return err
	})
	return time.Since(begun).Round(time.Second)
}

// Ensure that what a hand did at the place is named, that states which do not need it are restored, and that the next base makes the
// backup whole: an object of the log that was removed, one of a base that was changed, and a bucket that was emptied.
func TestShips_damaged(t *testing.T) {
	f := newFleet(t, 10*time.Minute)
	f.ship("all", 60, 200)
	r := f.record(50 * time.Millisecond)
	from := "--from=" + f.url("all")
	var rows []row
	f.reaches(r.wait(100))
	base := f.objects("all", "base")[0]

	segments := f.objects("all", "log")
	removed := segments[len(segments)/2]
	if err := os.Remove(removed); err != nil {
		t.Fatal(err)
	}
	status, said := f.quorate("backup", "verify", from)
	if status != 1 || !strings.Contains(said, "cannot be restored: no object that can be read has entry") ||
		!strings.Contains(said, "ask for it with --at entry:") {
		t.Errorf("a segment is gone: %d %s", status, said)
	}
	took := f.nextBase(r.last().revision)
	f.reaches(r.last().revision)
	if status, said := f.quorate("backup", "verify", from); status != 0 {
		t.Errorf("a segment is gone, and a base came after it: %d %s", status, said)
	}
	rows = append(rows, row{"a segment was removed by hand", "`verify` says which entry is missing and which state can be had; the next base, " +
		took.String() + " later, leads past it", "states after the segment and before that base"})

	newest := f.objects("all", "base")
	changed := f.fileOf(newest[len(newest)-1], base)
	f.flipFile(changed)
	status, said = f.quorate("backup", "verify", from)
	if status != 1 || !strings.Contains(said, filepath.Base(changed)) {
		t.Errorf("a file of a base has another byte: %d %s", status, said)
	}
	rows = append(rows, row{"a byte of a base's file was changed by hand", "`verify` names the object", "states that only this base leads to"})

	if err := os.Rename(filepath.Join(f.bucket, "all"), filepath.Join(t.TempDir(), "gone")); err != nil {
		t.Fatal(err)
	}
	took = f.nextBase(r.last().revision)
	last := r.end()
	f.reaches(last)
	if status, said := f.quorate("backup", "verify", from); status != 0 {
		t.Errorf("the bucket was emptied, and a base came after that: %d %s", status, said)
	}
	f.latest("all", r)
	rows = append(rows, row{"the bucket was emptied by hand", "the next base, " + took.String() + " later, is whole, and the log goes on after it",
		"all states before that base"})
	table(t, rows)
}

// wait waits for so many writes, and returns the revision after them.
func (r *recorder) wait(count int) int64 {
	r.f.until(fmt.Sprint(count, " writes"), func() error {
		r.mu.Lock()
		defer r.mu.Unlock()
		if len(r.all) < count {
			return errBehind
		}
		return nil
	})
	return r.last().revision
}

// fileOf returns the largest file of a base that another one has not.
func (f *fleet) fileOf(base, without string) (path string) {
	f.t.Helper()
	manifest := func(path string) *backup.Manifest {
		content, err := os.ReadFile(path)
		if err != nil {
			f.t.Fatal(err)
		}
		name, err := filepath.Rel(filepath.Join(f.bucket, "all"), path)
		if err != nil {
			f.t.Fatal(err)
		}
		parsed, err := backup.ParseBase(filepath.ToSlash(name))
		if err != nil {
			f.t.Fatalf("%s: %v", name, err)
		}
		m, err := backup.OpenManifest(&parsed, content, nil)
		if err != nil {
			f.t.Fatal(err)
		}
		return m
	}
	old := map[backup.Hash]bool{}
	for _, file := range manifest(without).Files {
		old[file.Hash] = true
	}
	var most int64
	of := manifest(base)
	for _, file := range of.Files {
		if file.Size > most && !old[file.Hash] {
			name := backup.FileName(consensus.ClusterID(of.Cluster), file.Hash)
			most, path = file.Size, filepath.Join(f.bucket, "all", filepath.FromSlash(name))
		}
	}
	return path
}
