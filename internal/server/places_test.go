package server_test

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/internal/config"
)

// Ensure that a client makes a member write below the directories that its operator allows, and nowhere else: also by a link, by a
// policy of the time when more was allowed, and where nothing is allowed.
func TestServer_backupPlaces(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	root := t.TempDir()
	allowed, secret, link := filepath.Join(root, "allowed"), filepath.Join(root, "secret"), filepath.Join(root, "allowed", "link")
	if err := errors.Join(os.Mkdir(allowed, 0o700), os.Mkdir(secret, 0o700), os.Symlink(secret, link)); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "m")
	b := &shipped{t: t, ctx: ctx, url: "file://" + allowed}
	start := func(flags ...string) (stop func()) {
		s := startAll(t, []config.Config{loadConfig(t, append(flags, "--name", "m", "--data-dir", dir,
			"--listen-client-urls=http://127.0.0.1:0", "--listen-peer-urls=http://127.0.0.1:0",
			"--initial-advertise-peer-urls=http://127.0.0.1:1", "--initial-cluster=m=http://127.0.0.1:1")...)})[0]
		b.dial(s)
		return func() {
			if err := s.Stop(ctx); err != nil {
				t.Fatal(err)
			}
		}
	}
	stop := start()
	refused := func(url, say string) {
		t.Helper()
		_, err := b.api().Start(ctx, &quoratepb.StartBackupRequest{Place: url})
		if status.Code(err) != codes.FailedPrecondition || !strings.Contains(err.Error(), say) {
			t.Errorf("start %s: %v, want words of %q", url, err, say)
		}
	}
	refused(b.url, "its --backup-places is not set. Start each member that may ship there with --backup-places "+b.url)
	stop()
	stop = start("--backup-places=" + b.url)
	refused("file://"+secret, "its --backup-places allows "+b.url)
	refused("file://"+allowed+"/../secret", "its --backup-places allows "+b.url)
	if got, err := b.api().Status(ctx, &quoratepb.BackupStatusRequest{}); err != nil || got.GetGeneration() != 0 {
		t.Errorf("after what was refused: %v, %v", got, err)
	}
	b.start()
	b.until("allowed", b.write())
	own := b.url
	b.url = "file://" + link
	b.start()
	b.troubled("a link leads from " + link)
	b.url = own
	b.start()
	stop()

	before := contents(t, allowed)
	stop = start("--backup-places=s3://backups/prod")
	defer stop()
	b.write()
	b.troubled("its --backup-places allows s3://backups/prod.")
	seen, err := quoratepb.NewDoctorClient(b.client.ActiveConnection()).Observe(ctx, &quoratepb.ObserveRequest{})
	if err != nil || !strings.Contains(seen.GetBackup().GetRefused(), "--backup-places") {
		t.Errorf("observed: %v, %v", seen.GetBackup(), err)
	}
	if after := contents(t, allowed); after != before {
		t.Errorf("what is not allowed any more was written to: %s", after)
	}
	if left := contents(t, secret); left != "" {
		t.Errorf("what was never allowed was written to: %s", left)
	}
}

// Ensure that no write waits for a place that takes connections and says nothing.
func TestServer_hangingPlace(t *testing.T) {
	t.Setenv("AWS_ACCESS_KEY_ID", "key")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "secret")
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	asked := make(chan struct{}, 1)
	go func() {
		var all []net.Conn // open until the end
		for {
			conn, err := silent.Accept()
			if err != nil {
				for _, c := range all {
					_ = c.Close()
				}
				return
			}
			all = append(all, conn)
			select {
			case asked <- struct{}{}:
			default:
			}
		}
	}()
	b := &shipped{t: t, ctx: ctx, url: "s3://backups?endpoint=http://" + silent.Addr().String()}
	b.dial(startAll(t, []config.Config{loadConfig(t, "--name", "m", "--data-dir", filepath.Join(t.TempDir(), "m"),
		"--listen-client-urls=http://127.0.0.1:0", "--listen-peer-urls=http://127.0.0.1:0",
		"--initial-advertise-peer-urls=http://127.0.0.1:1", "--initial-cluster=m=http://127.0.0.1:1",
		"--backup-places", b.url)})[0])
	b.start()
	select {
	case <-asked:
	case <-ctx.Done():
		t.Fatal("the place is not asked")
	}
	for end := time.Now().Add(time.Second); time.Now().Before(end); {
		begun := time.Now()
		b.write()
		if took := time.Since(begun); took > 10*time.Second {
			t.Fatalf("50 puts took %v while the place hangs", took)
		}
	}
}

// troubled waits until the member that ships says why it cannot.
func (b *shipped) troubled(say string) {
	b.t.Helper()
	for {
		got, err := b.api().Status(b.ctx, &quoratepb.BackupStatusRequest{})
		if err != nil {
			b.t.Fatalf("%v; last %v", err, b.last)
		}
		if b.last = got; strings.Contains(got.GetTrouble(), say) {
			return
		}
		<-time.After(50 * time.Millisecond)
	}
}

// contents are the names of all files below a directory.
func contents(t *testing.T, dir string) string {
	t.Helper()
	var all strings.Builder
	err := filepath.WalkDir(dir, func(path string, e os.DirEntry, err error) error {
		if err == nil && e.Type().IsRegular() {
			all.WriteString(path + "\n")
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all.String()
}
