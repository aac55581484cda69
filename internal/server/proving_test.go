package server_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/internal/base/testnet"
	"github.com/quorate/quorate/internal/config"
)

// untilTried waits for a try to prove the backup after one, and returns how it ended.
func (b *shipped) untilTried(what string, after int64) *quoratepb.BackupProven {
	b.t.Helper()
	for {
		got, err := b.api().Status(b.ctx, &quoratepb.BackupStatusRequest{})
		if b.ctx.Err() != nil {
			b.t.Fatalf("%s: %v; last %v", what, err, b.last)
		}
		if err == nil {
			b.last = got
		}
		if v := got.GetVerified(); v.GetTimeMs() > after {
			return v
		}
		<-time.After(50 * time.Millisecond)
	}
}

// Ensure that a cluster proves its backup by itself, by a member that neither ships nor leads; that it finds an object that was
// changed, and one that is gone, and says so; and that what it proved before is still known.
func TestServer_proves(t *testing.T) {
	if testing.Short() {
		t.Skip("three members start")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 90*time.Second)
	defer cancel()
	dir := t.TempDir()
	var peers, homes []string
	for range 3 {
		peers, homes = append(peers, "http://"+testnet.Address(t)), append(homes, filepath.Join(t.TempDir(), "m"))
	}
	var configs []config.Config
	for i, peer := range peers {
		configs = append(configs, loadConfig(t, "--name", fmt.Sprint("m", i), "--data-dir", homes[i], "--backup-places", "file://"+dir,
			"--listen-client-urls=http://127.0.0.1:0", "--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer,
			"--initial-cluster", fmt.Sprintf("m0=%s,m1=%s,m2=%s", peers[0], peers[1], peers[2])))
	}
	servers := startAll(t, configs)
	b := &shipped{t: t, ctx: ctx, url: "file://" + dir}
	b.dial(servers...)
	b.start()
	first := b.untilTried("at first", 0)
	if !first.GetProven() || first.GetDamaged() > 0 || first.GetMemberName() == "" || first.GetMemberName() == b.last.GetMemberName() {
		t.Errorf("got %v; %s ships", first, b.last.GetMemberName())
	}
	for i, home := range homes {
		if _, err := os.Stat(filepath.Join(home, "member", "snap", "proved")); err == nil {
			t.Errorf("member %d keeps its scratch", i)
		}
	}
	b.until("more is written", b.write())
	for what, spoil := range map[string]struct {
		of     string
		last   int
		damage func(string) error
		why    string
	}{"segments changed": {"log", 3, flip, "object log/"}, "files gone": {"obj", 100, os.Remove, "object obj/"}} {
		restore := spoils(t, filepath.Join(dir, spoil.of), spoil.last, spoil.damage)
		b.start() // a policy is followed by a proof
		failed := b.untilTried(what, b.last.GetVerified().GetTimeMs())
		if failed.GetProven() || !failed.GetFailed() || !strings.Contains(failed.GetWhy(), spoil.why) {
			t.Errorf("%s: got %v", what, failed)
		}
		if p := b.last.GetProven(); p.GetTimeMs() < first.GetTimeMs() || !p.GetProven() {
			t.Errorf("%s: the last proof is %v", what, p)
		}
		restore()
		b.start()
		if healed := b.untilTried("healed", failed.GetTimeMs()); !healed.GetProven() || healed.GetRevision() < 50 {
			t.Errorf("healed: got %v", healed)
		}
	}
}

// spoils damages the last objects below a directory, and returns a function that undoes it.
func spoils(t *testing.T, dir string, last int, damage func(string) error) (restore func()) {
	t.Helper()
	var names []string
	err := filepath.WalkDir(dir, func(path string, e os.DirEntry, err error) error {
		if err == nil && !e.IsDir() {
			names = append(names, path)
		}
		return err
	})
	if err != nil || len(names) == 0 {
		t.Fatalf("%d objects, %v", len(names), err)
	}
	kept := map[string][]byte{}
	for _, name := range names[max(0, len(names)-last):] {
		content, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		kept[name] = content
		if err := damage(name); err != nil {
			t.Fatal(err)
		}
	}
	return func() {
		for path, content := range kept {
			if err := os.WriteFile(path, content, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// flip changes a bit of a file.
func flip(path string) error {
	content, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	content[len(content)/2] ^= 1
	return os.WriteFile(path, content, 0o600)
}
