package server_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/internal/backup"
	"github.com/quorate/quorate/internal/backup/fetch"
	"github.com/quorate/quorate/internal/backup/seal"
	"github.com/quorate/quorate/internal/base/testnet"
	"github.com/quorate/quorate/internal/config"
	"github.com/quorate/quorate/internal/server"
	"github.com/quorate/quorate/internal/storage/files"
	"github.com/quorate/quorate/internal/storage/objects/place"
)

// Ensure that another member goes on without a gap when the one that ships is gone, and that a restore proves all of it.
func TestServer_shipsOn(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes a quarter of a minute until a member that is gone is replaced")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 90*time.Second)
	defer cancel()
	url := "file://" + t.TempDir()
	var peers []string
	for range 3 {
		peers = append(peers, "http://"+testnet.Address(t))
	}
	var configs []config.Config
	for i, peer := range peers {
		configs = append(configs, loadConfig(t, "--name", fmt.Sprint("m", i), "--data-dir", filepath.Join(t.TempDir(), "m"),
			"--listen-client-urls=http://127.0.0.1:0", "--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer,
			"--initial-cluster", fmt.Sprintf("m0=%s,m1=%s,m2=%s", peers[0], peers[1], peers[2]), "--backup-places", url))
	}
	servers := startAll(t, configs)
	b := &shipped{t: t, ctx: ctx, url: url}
	b.dial(servers...)
	b.start()
	b.until("at first", b.write())
	ships := b.last.GetMemberName()
	var left []*server.Server
	for i, s := range servers {
		if fmt.Sprint("m", i) != ships {
			left = append(left, s)
			continue
		}
		if err := s.Stop(ctx); err != nil {
			t.Fatal(err)
		}
	}
	b.dial(left...)
	b.until("after "+ships+" was stopped", b.write())
	if got := b.last; got.GetMemberName() == ships || got.GetTurn() < 3 || got.GetGaps() > 0 {
		t.Errorf("got %v", got)
	}
}

// shipped is a cluster that ships to a directory.
type shipped struct {
	t      *testing.T
	ctx    context.Context
	url    string
	client *clientv3.Client
	last   *quoratepb.BackupStatus
	// recipients are those of the next start, and identities the files that restores read with.
	recipients, identities []string
}

func (b *shipped) dial(servers ...*server.Server) {
	b.t.Helper()
	var endpoints []string
	for _, s := range servers {
		endpoints = append(endpoints, "http://"+s.ClientAddresses()[0].String())
	}
	client, err := clientv3.New(clientv3.Config{Endpoints: endpoints, Logger: zap.NewNop()})
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { _ = client.Close() })
	b.client = client
}

func (b *shipped) api() quoratepb.BackupClient {
	return quoratepb.NewBackupClient(b.client.ActiveConnection())
}

// start starts the backup once the level that it needs has risen.
func (b *shipped) start() {
	b.t.Helper()
	for {
		_, err := b.api().Start(b.ctx, &quoratepb.StartBackupRequest{Place: b.url, SealMs: 100, Recipients: b.recipients})
		if err == nil {
			return
		}
		if status.Code(err) != codes.FailedPrecondition || b.ctx.Err() != nil {
			b.t.Fatal(err)
		}
		<-time.After(50 * time.Millisecond)
	}
}

// write writes a little, and returns the revision after it.
func (b *shipped) write() (revision int64) {
	b.t.Helper()
	for i := range 50 {
		put, err := b.client.Put(b.ctx, fmt.Sprintf("k%d", i), "value")
		if err != nil {
			b.t.Fatal(err)
		}
		revision = put.Header.Revision
	}
	return revision
}

// until waits until a revision can be restored as the cluster says, and proves it.
func (b *shipped) until(what string, revision int64) {
	b.t.Helper()
	for {
		got, err := b.api().Status(b.ctx, &quoratepb.BackupStatusRequest{})
		if b.ctx.Err() != nil {
			b.t.Fatalf("%s: %v; last %v", what, err, b.last)
		}
		if err == nil {
			b.last = got
		}
		if got.GetRestorable().GetRevision() >= revision && got.GetBase().GetIndex() > 0 {
			if n := len(got.GetMade()); n == 0 || got.GetMade()[n-1].GetIndex() != got.GetBase().GetIndex() ||
				len(got.GetMade()[n-1].GetSha256()) != sha256.Size {
				b.t.Errorf("members made %v, and the newest base is %v", got.GetMade(), got.GetBase())
			}
			break
		}
		<-time.After(50 * time.Millisecond)
	}
	if proved, err := b.verify(b.identities...); err != nil || int64(proved.At.Revision) < revision {
		b.t.Errorf("%s: proved %+v, %v; want revision %d", what, proved, err, revision)
	}
}

// verify restores the latest state with the identities in files.
func (b *shipped) verify(identities ...string) (*server.Proved, error) {
	b.t.Helper()
	open, err := seal.ReadIdentities(identities)
	if err != nil {
		b.t.Fatal(err)
	}
	at, err := place.Parse(b.url)
	if err != nil {
		b.t.Fatal(err)
	}
	store, err := place.Open(at, place.Options{FS: files.Disk, Memory: 64 << 20})
	if err != nil {
		b.t.Fatal(err)
	}
	defer store.Close()
	clusters, err := fetch.Clusters(b.ctx, store)
	if err != nil || len(clusters) != 1 {
		b.t.Fatal(clusters, err)
	}
	catalog, err := fetch.Catalog(b.ctx, store, clusters[0])
	if err != nil {
		b.t.Fatal(err)
	}
	target, err := backup.ParseTarget("latest")
	if err != nil {
		b.t.Fatal(err)
	}
	return server.VerifyBackup(b.ctx, &server.Backup{Store: store, Catalog: catalog, Target: target, Open: open,
		Scratch: b.t.TempDir()})
}

// Ensure that a cluster that is told to ships what is written, says until when, and that a restore proves it; also after it was
// stopped and went on, and after the process was started anew.
func TestServer_ships(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	dir := filepath.Join(t.TempDir(), "m")
	b := &shipped{t: t, ctx: ctx, url: "file://" + t.TempDir()}
	start := func() *server.Server {
		s := startAll(t, []config.Config{loadConfig(t, "--name", "m", "--data-dir", dir, "--listen-client-urls=http://127.0.0.1:0",
			"--listen-peer-urls=http://127.0.0.1:0", "--initial-advertise-peer-urls=http://127.0.0.1:1",
			"--initial-cluster=m=http://127.0.0.1:1", "--backup-places", b.url)})[0]
		b.dial(s)
		return s
	}
	s := start()
	b.start()
	b.until("at first", b.write())
	if _, err := b.api().Stop(ctx, &quoratepb.StopBackupRequest{}); err != nil {
		t.Fatal(err)
	}
	b.write()
	if _, err := b.api().Start(ctx, &quoratepb.StartBackupRequest{}); err != nil {
		t.Fatal(err)
	}
	b.until("after it was stopped", b.write())
	saved, err := b.client.Snapshot(ctx) // the store has all on disk then: nothing is read from the log at the next start
	if err == nil {
		_, err = io.Copy(io.Discard, saved)
	}
	if err := errors.Join(err, s.Stop(ctx)); err != nil {
		t.Fatal(err)
	}
	gaps := b.last.GetGaps()
	start()
	b.until("after another start", b.write())
	if b.last.GetGaps() != gaps {
		t.Errorf("another start left a gap: %v", b.last)
	}
}
