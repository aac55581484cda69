//go:build unix

package server_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"golang.org/x/sys/unix"

	"github.com/quorate/quorate/internal/base/testnet"
	"github.com/quorate/quorate/internal/member/restore"
	"github.com/quorate/quorate/internal/server"
	"github.com/quorate/quorate/internal/storage/files"
	"github.com/quorate/quorate/internal/storage/keysource"
	"github.com/quorate/quorate/internal/storage/wal"
)

// mayBeLinks are the directories in a data directory that an operator may link.
var mayBeLinks = []string{"member", "member/wal"}

// diskImage is the data directory of a member, and a directory of somebody else beside it.
type diskImage struct {
	t         *testing.T
	root      string
	arguments []string
}

func (d *diskImage) data() string  { return filepath.Join(d.root, "data") }
func (d *diskImage) other() string { return filepath.Join(d.root, "other") }

// plants are what may lie in the place of a file: the name of it, and how it is put there.
var plants = map[string]func(d *diskImage, path string) error{
	"pipe": func(_ *diskImage, path string) error { return unix.Mkfifo(path, 0o600) },
	"socket": func(_ *diskImage, path string) error {
		return unix.Mknod(path, unix.S_IFSOCK|0o600, 0)
	},
	"directory": func(_ *diskImage, path string) error { return os.Mkdir(path, 0o700) },
	"link":      func(d *diskImage, path string) error { return os.Symlink(filepath.Join(d.other(), "precious"), path) },
	"link to nothing": func(d *diskImage, path string) error {
		return os.Symlink(filepath.Join(d.other(), "absent"), path)
	},
	"link to a directory": func(d *diskImage, path string) error { return os.Symlink(d.other(), path) },
}

// newDiskImage makes the data of a member that has run and stopped.
func newDiskImage(t *testing.T) *diskImage {
	d := &diskImage{t: t, root: t.TempDir()}
	client, peer := testnet.Address(t), testnet.Address(t)
	d.arguments = []string{"--name=m", "--listen-client-urls=http://" + client, "--advertise-client-urls=http://" + client,
		"--listen-peer-urls=https://" + peer, "--initial-advertise-peer-urls=https://" + peer, "--initial-cluster=m=https://" + peer,
		"--peer-auto-tls"}
	for range 2 {
		if err := d.start(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	return d
}

// start starts the member, writes and stops it.
func (d *diskImage) start(ctx context.Context) error {
	c := loadConfig(d.t, append(d.arguments, "--data-dir", d.data())...)
	s, err := server.Start(ctx, c, server.Options{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	defer s.Stop(context.WithoutCancel(ctx))
	etcd, err := clientv3.New(clientv3.Config{Endpoints: []string{c.Listen.ClientURLs[0].Address}})
	if err != nil {
		return err
	}
	defer etcd.Close()
	_, err = etcd.Put(ctx, "k", "v")
	return err
}

// copy copies the data, so that the original can be spoilt again.
func (d *diskImage) copy(t *testing.T) *diskImage {
	c := &diskImage{t: t, root: t.TempDir(), arguments: d.arguments}
	if err := os.CopyFS(c.data(), os.DirFS(d.data())); err != nil {
		t.Fatal(err)
	}
	c.somebody()
	return c
}

// somebody makes the directory of somebody else.
func (d *diskImage) somebody() {
	for _, err := range []error{os.Mkdir(d.other(), 0o700), os.WriteFile(filepath.Join(d.other(), "precious"), []byte("precious"), 0o600)} {
		if err != nil {
			d.t.Fatal(err)
		}
	}
}

// untouched reports whether nothing was written beside the data.
func (d *diskImage) untouched() error {
	entries, err := os.ReadDir(d.other())
	if err != nil || len(entries) != 1 {
		return fmt.Errorf("the directory of somebody else has %v, %w", entries, err)
	}
	if got, err := os.ReadFile(filepath.Join(d.other(), "precious")); string(got) != "precious" {
		return fmt.Errorf("the file of somebody else has %q, %w", got, err)
	}
	return nil
}

// names are the files and directories of the data, but those that are like another one: the tables of the store, segments of the
// log.
func (d *diskImage) names() (all []string) {
	numbers, seen := regexp.MustCompile(`[0-9a-f]{6,}`), map[string]bool{}
	err := filepath.WalkDir(d.data(), func(path string, _ fs.DirEntry, err error) error {
		name, _ := filepath.Rel(d.data(), path)
		if like := numbers.ReplaceAllString(name, "N"); err == nil && name != "." && !seen[like] {
			seen[like] = true
			all = append(all, name)
		}
		return err
	})
	if err != nil || len(all) < 12 {
		d.t.Fatalf("%v, %v", all, err)
	}
	return all
}

// readers are the commands that read the data of a member that does not run.
func (d *diskImage) readers() map[string]func() error {
	type opener func(context.Context, string, string, keysource.Source) (*server.Stopped, error)
	opened := func(open opener) func() error {
		return func() error {
			stopped, err := open(d.t.Context(), d.data(), "", keysource.Source{})
			if err != nil {
				return err
			}
			_, err = stopped.Inspect()
			if closed := stopped.Close(); err == nil {
				err = closed
			}
			return err
		}
	}
	return map[string]func() error{
		"doctor --offline": opened(server.OpenToRead), "recover": opened(server.OpenStopped),
		"log dump": func() error { return wal.Dump(io.Discard, files.Disk, filepath.Join(d.data(), "member", "wal"), nil) },
		"snapshot restore": func() error {
			etcd, err := restore.OpenEtcd(d.t.Context(), d.data(), "")
			if err == nil {
				err = etcd.Close()
			}
			return err
		},
		"start": func() error {
			ctx, cancel := context.WithTimeout(d.t.Context(), 20*time.Second)
			defer cancel()
			return d.start(ctx)
		},
	}
}

// within fails the test if a command waits for ever.
func (d *diskImage) within(what string, command func() error) error {
	d.t.Helper()
	done := make(chan error, 1)
	go func() { done <- command() }()
	select {
	case err := <-done:
		return err
	case <-time.After(time.Minute):
		d.t.Fatalf("%s waits for ever", what)
		return nil
	}
}

// Ensure that no command waits for ever, or writes beside the data, where something else lies in the place of any file or directory of a
// data directory; and that a start refuses what it would have to follow, with a sentence.
func TestStart_hostileDisk(t *testing.T) {
	if testing.Short() {
		t.Skip("some hundred starts")
	}
	original := newDiskImage(t)
	refused := 0
	for _, name := range original.names() {
		for kind, plant := range plants {
			t.Run(strings.ReplaceAll(name, "/", "_")+" is a "+kind, func(t *testing.T) {
				d := original.copy(t)
				path := filepath.Join(d.data(), name)
				if err := errors.Join(os.RemoveAll(path), plant(d, path)); err != nil {
					t.Fatal(err)
				}
				for _, what := range []string{"doctor --offline", "recover", "log dump", "snapshot restore", "start"} {
					err := d.within(what, d.readers()[what])
					if err != nil && strings.Contains(err.Error(), "was changed") {
						refused++
					}
					if err := d.untouched(); err != nil && !(kind == "link to a directory" && slices.Contains(mayBeLinks, name)) {
						t.Errorf("%s: %v", what, err)
					}
				}
			})
		}
	}
	if refused < 50 {
		t.Errorf("only %d commands say what is wrong", refused)
	}
}

// Ensure that an operator may link the data directory, the member's directory in it and the log.
func TestStart_linkedDirectories(t *testing.T) {
	original := newDiskImage(t)
	for _, name := range append([]string{""}, mayBeLinks...) {
		d := original.copy(t)
		path, moved := filepath.Join(d.data(), name), filepath.Join(d.root, "moved")
		if err := os.Rename(path, moved); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(moved, path); err != nil {
			t.Fatal(err)
		}
		for what, command := range d.readers() {
			if err := d.within(what, command); err != nil && what != "snapshot restore" {
				t.Errorf("%q is a link: %s: %v", name, what, err)
			}
		}
	}
}
