package objects_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/internal/base/testnet"
)

// buildMember builds the program of members once, and returns its file.
var buildMember = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "quorate-objects-")
	if err != nil {
		return "", err
	}
	file := filepath.Join(dir, "quorate")
	build := exec.Command("go", "build", "-o", file, "./cmd/quorate")
	build.Dir = filepath.Join("..", "..")
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w: %s", err, out)
	}
	return file, nil
})

// daemon is a process that a test kills and starts again.
type daemon struct {
	t       *testing.T
	file    string
	args    []string
	env     []string
	log     string
	process *exec.Cmd
}

func (d *daemon) start() {
	d.t.Helper()
	log, err := os.OpenFile(d.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		d.t.Fatal(err)
	}
	defer log.Close()
	d.process = exec.Command(d.file, d.args...)
	d.process.Env = append(os.Environ(), d.env...)
	d.process.Stdout, d.process.Stderr = log, log
	if err := d.process.Start(); err != nil {
		d.t.Fatal(err)
	}
}

func (d *daemon) kill() {
	if d.process != nil {
		_ = d.process.Process.Kill()
		_ = d.process.Wait() // it was killed
		d.process = nil
	}
}

// node is a member.
type node struct {
	daemon
	name, dir, client string
}

// fleet is three members that ship to a bucket of versitygw through a proxy.
type fleet struct {
	t       *testing.T
	ctx     context.Context
	binary  string
	env     []string
	nodes   []*node
	gateway *daemon
	address string // of the gateway
	bucket  string // its directory
	proxy   *proxy
	client  *clientv3.Client
}

const bucketName = "backups"

func newFleet(t *testing.T, within time.Duration) *fleet {
	t.Helper()
	if testing.Short() {
		t.Skip("it takes minutes: make ships")
	}
	binary, err := buildMember()
	if err != nil {
		t.Fatal(err)
	}
	gateway, err := buildGateway()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), within)
	t.Cleanup(cancel)
	dir := t.TempDir()
	f := &fleet{t: t, ctx: ctx, binary: binary, address: testnet.Address(t), bucket: filepath.Join(dir, "s3", bucketName),
		env: []string{"AWS_ACCESS_KEY_ID=" + accessKey, "AWS_SECRET_ACCESS_KEY=" + secretKey}}
	if err := os.MkdirAll(f.bucket, 0o755); err != nil {
		t.Fatal(err)
	}
	f.gateway = &daemon{t: t, file: gateway, log: filepath.Join(dir, "versitygw.log"),
		args: []string{"--port", f.address, "--region", region, "--quiet", "posix", filepath.Dir(f.bucket)},
		env:  []string{"ROOT_ACCESS_KEY=" + accessKey, "ROOT_SECRET_KEY=" + secretKey}}
	f.startGateway()
	f.proxy = newProxy(t, f.address)
	f.found(dir)
	t.Cleanup(f.end)
	return f
}

func (f *fleet) startGateway() {
	f.gateway.start()
	awaitPort(f.t, f.address)
}

// found starts the members of a new cluster.
func (f *fleet) found(dir string) {
	var cluster, peers, endpoints []string
	for i := range 3 {
		peers = append(peers, "http://"+testnet.Address(f.t))
		cluster = append(cluster, fmt.Sprintf("m%d=%s", i+1, peers[i]))
	}
	for i, peer := range peers {
		n := &node{name: fmt.Sprint("m", i+1), client: "http://" + testnet.Address(f.t)}
		n.dir = filepath.Join(dir, n.name)
		n.daemon = daemon{t: f.t, file: f.binary, env: f.env, log: n.dir + ".log", args: []string{"--name", n.name,
			"--data-dir", n.dir, "--listen-client-urls", n.client, "--advertise-client-urls", n.client,
			"--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer, "--initial-cluster",
			strings.Join(cluster, ","), "--level-policy=now", "--memory=1GiB",
			"--backup-places=s3://" + bucketName + "?endpoint=" + f.proxy.URL}}
		n.start()
		f.nodes, endpoints = append(f.nodes, n), append(endpoints, n.client)
	}
	client, err := clientv3.New(clientv3.Config{Endpoints: endpoints, Logger: zap.NewNop(), DialKeepAliveTime: time.Second,
		DialKeepAliveTimeout: time.Second})
	if err != nil {
		f.t.Fatal(err)
	}
	f.client = client
}

func (f *fleet) end() {
	_ = f.client.Close()
	for _, n := range f.nodes {
		n.kill()
	}
	f.gateway.kill()
	if !f.t.Failed() {
		return
	}
	for _, n := range f.nodes {
		if text, err := os.ReadFile(n.log); err == nil {
			f.t.Logf("%s says: %s", n.name, text[max(0, len(text)-3000):])
		}
	}
}

// member returns a member by its name.
func (f *fleet) member(name string) *node {
	for _, n := range f.nodes {
		if n.name == name {
			return n
		}
	}
	return nil
}

func (f *fleet) url(prefix string) string {
	return "s3://" + bucketName + "/" + prefix + "?endpoint=" + f.proxy.URL
}

// ship lets the cluster ship to a prefix. Calls that meet no leader, or a member that was killed, are made again.
func (f *fleet) ship(prefix string, baseSeconds, sealMillis int64) {
	f.t.Helper()
	f.until("the backup is started", func() error {
		ctx, cancel := context.WithTimeout(f.ctx, 5*time.Second)
		defer cancel()
		_, err := quoratepb.NewBackupClient(f.client.ActiveConnection()).Start(ctx, &quoratepb.StartBackupRequest{
			Place: f.url(prefix), BaseSeconds: baseSeconds, SealMs: sealMillis})
		if status.Code(err) == codes.InvalidArgument {
			f.t.Fatal(err)
		}
		return err
	})
}

// status asks the cluster, which may have no leader.
func (f *fleet) status() (*quoratepb.BackupStatus, error) {
	ctx, cancel := context.WithTimeout(f.ctx, 5*time.Second)
	defer cancel()
	return quoratepb.NewBackupClient(f.client.ActiveConnection()).Status(ctx, &quoratepb.BackupStatusRequest{})
}

// until tries until it succeeds.
func (f *fleet) until(what string, try func() error) {
	f.t.Helper()
	for {
		err := try()
		if err == nil {
			return
		}
		if f.ctx.Err() != nil {
			f.t.Fatalf("until %s: %v", what, err)
		}
		f.pause(50 * time.Millisecond)
	}
}

// pause waits, or until the test has no time left.
func (f *fleet) pause(d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-f.ctx.Done():
	}
}

var errBehind = errors.New("it is behind")

// reaches waits until the cluster says that a revision can be restored, and returns what it says.
func (f *fleet) reaches(revision int64) (got *quoratepb.BackupStatus) {
	f.t.Helper()
	f.until(fmt.Sprintf("revision %d can be restored", revision), func() (err error) {
		got, err = f.status()
		if err == nil && (got.GetRestorable().GetRevision() < revision || got.GetBase() == nil) {
			err = fmt.Errorf("%w: %v", errBehind, got)
		}
		return err
	})
	return got
}
