//go:build unix

package atrest_test

import (
	"context"
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/quorate/quorate/internal/storage/keysource"
)

// secret is a volume of Kubernetes with a Secret of one file, key.
type secret struct {
	t      *testing.T
	dir    string
	swaps  int
	mode   os.FileMode
	group  int // of root's files; 0: they belong to the process
	latest string
}

// swap puts content in the place of what is there, in one step, as a kubelet does.
func (s *secret) swap(content string) {
	s.t.Helper()
	s.swaps++
	former, next := s.latest, fmt.Sprintf("..2026_11_30_%d", s.swaps)
	s.latest = next
	if err := os.Mkdir(filepath.Join(s.dir, next), 0o755); err != nil {
		s.t.Fatal(err)
	}
	key := filepath.Join(s.dir, next, "key")
	if err := os.WriteFile(key, []byte(content), 0o600); err != nil {
		s.t.Fatal(err)
	}
	if s.group != 0 {
		if err := os.Chown(key, 0, s.group); err != nil {
			s.t.Fatal(err)
		}
	}
	for _, err := range []error{os.Chmod(key, s.mode), os.Symlink(next, filepath.Join(s.dir, "..data_tmp")),
		os.Rename(filepath.Join(s.dir, "..data_tmp"), filepath.Join(s.dir, "..data"))} {
		if err != nil {
			s.t.Fatal(err)
		}
	}
	if former != "" {
		if err := os.RemoveAll(filepath.Join(s.dir, former)); err != nil {
			s.t.Fatal(err)
		}
	}
}

func newSecret(t *testing.T, mode os.FileMode, group int, content string) *secret {
	t.Helper()
	s := &secret{t: t, dir: t.TempDir(), mode: mode, group: group}
	s.swap(content)
	if err := os.Symlink(filepath.Join("..data", "key"), s.name()); err != nil {
		t.Fatal(err)
	}
	return s
}

func (s *secret) name() string { return filepath.Join(s.dir, "key") }

func lines(letters string) (text string) {
	for i := range len(letters) {
		text += base64.StdEncoding.EncodeToString(oneKey(letters[i])) + "\n"
	}
	return text
}

// Ensure that a key is read from a Secret while the Secret is replaced, each time as a whole.
func TestReadKeyFile_secretSwapped(t *testing.T) {
	s := newSecret(t, 0o400, 0, lines("a"))
	plain, err := (must(keysource.ReadKeyFile(s.name()))).Wrap(context.Background(), oneKey('x'))
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for i := range 300 {
			s.swap(lines([]string{"ba", "a"}[i%2]))
		}
	}()
	for reads := 0; ; reads++ {
		k, err := keysource.ReadKeyFile(s.name())
		if err != nil {
			t.Fatalf("after %d reads: %v", reads, err)
		}
		if _, err := k.Unwrap(context.Background(), &plain); err != nil {
			t.Fatal(err)
		}
		select {
		case <-done:
			t.Logf("%d reads", reads)
			return
		default:
		}
	}
}

// Ensure that a file of root's may be lent to a group of the process, as fsGroup does, and to nobody else.
func TestReadKeyFile_group(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root gives files away")
	}
	groups, err := os.Getgroups()
	if err != nil {
		t.Fatal(err)
	}
	const ours, others = 54321, 54322
	if err := syscall.Setgroups(append(groups, ours)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Setgroups(groups) })
	for _, row := range []struct {
		name  string
		mode  os.FileMode
		group int
		taken bool
	}{
		{"for fsGroup", 0o440, ours, true},
		{"for its owner", 0o400, others, true},
		{"for another group", 0o440, others, false},
		{"written by the group", 0o460, ours, false},
		{"executed by the group", 0o450, ours, false},
		{"for all", 0o444, ours, false},
		{"for all but the group", 0o404, ours, false},
	} {
		s := newSecret(t, row.mode, row.group, lines("a"))
		if _, err := keysource.ReadKeyFile(s.name()); (err == nil) != row.taken || err != nil && !strings.Contains(err.Error(), "fsGroup") {
			t.Errorf("%s: %v", row.name, err)
		}
	}
	of := newSecret(t, 0o440, ours, lines("a"))
	if err := os.Chown(filepath.Join(of.dir, of.latest, "key"), 1000, ours); err != nil {
		t.Fatal(err)
	}
	if _, err := keysource.ReadKeyFile(of.name()); err == nil {
		t.Error("a file of another user, who lends it to a group, is taken")
	}
}

// Ensure that links lead nowhere else, and that nothing is waited for.
func TestReadKeyFile_links(t *testing.T) {
	elsewhere := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(elsewhere, []byte(lines("a")), 0o400); err != nil {
		t.Fatal(err)
	}
	for name, link := range map[string]struct{ to, says string }{"out": {elsewhere, "name the file itself"},
		"circle": {"circle", "name the file itself"}, "through": {"away/key", "name the file itself"},
		"pipe": {"fifo", "it is a pipe, and no regular file"}, "dir": {"sub", "it is a directory, and no regular file"},
		"nothing": {"none", "no such file"}} {
		dir := t.TempDir()
		for _, err := range []error{syscall.Mkfifo(filepath.Join(dir, "fifo"), 0o600), os.Mkdir(filepath.Join(dir, "sub"), 0o700),
			os.Symlink(filepath.Dir(elsewhere), filepath.Join(dir, "away")), os.Symlink(link.to, filepath.Join(dir, name))} {
			if err != nil {
				t.Fatal(err)
			}
		}
		ended := make(chan error, 1)
		go func() {
			_, err := keysource.ReadKeyFile(filepath.Join(dir, name))
			ended <- err
		}()
		select {
		case err := <-ended:
			if err == nil || !strings.Contains(err.Error(), link.says) || !strings.Contains(err.Error(), dir) {
				t.Errorf("%s: got %v", name, err)
			}
		case <-time.After(10 * time.Second):
			t.Fatalf("%s: it waits", name)
		}
	}
}
