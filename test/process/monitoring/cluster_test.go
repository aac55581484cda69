package monitoring

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
)

// cluster is three processes.
type cluster struct {
	members []*member
	client  *clientv3.Client
	binary  string
	place   string // directory of the continuous backup
}

type member struct {
	client  string // address
	process *exec.Cmd
}

// start builds the server and starts three members. They end with the test.
func start(t *testing.T, flags ...string) *cluster {
	t.Helper()
	dir := t.TempDir()
	binary := filepath.Join(dir, "quorate")
	build := exec.Command("go", "build", "-o", binary, "./cmd/quorate")
	build.Dir, build.Env = filepath.Join("..", "..", ".."), append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	c := &cluster{binary: binary, place: filepath.Join(dir, "backup")}
	if err := os.Mkdir(c.place, 0o700); err != nil {
		t.Fatal(err)
	}
	var peers, names, endpoints []string
	for i := range 3 {
		c.members = append(c.members, &member{client: free(t)})
		peers = append(peers, "https://"+free(t))
		names = append(names, fmt.Sprintf("m%d=%s", i, peers[i]))
		endpoints = append(endpoints, c.members[i].client)
	}
	for i, m := range c.members {
		log, err := os.Create(filepath.Join(dir, fmt.Sprintf("m%d.log", i)))
		if err != nil {
			t.Fatal(err)
		}
		m.process = exec.Command(binary, append([]string{
			fmt.Sprintf("--name=m%d", i), "--data-dir=" + filepath.Join(dir, fmt.Sprintf("m%d", i)),
			"--listen-client-urls=http://" + m.client, "--advertise-client-urls=http://" + m.client,
			"--listen-peer-urls=" + peers[i], "--initial-advertise-peer-urls=" + peers[i],
			"--initial-cluster=" + strings.Join(names, ","), "--peer-auto-tls",
			"--backup-places=file://" + c.place}, flags...)...)
		m.process.Stdout, m.process.Stderr = log, log
		if err := m.process.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { m.kill(); _ = log.Close() })
	}
	var err error
	c.client, err = clientv3.New(clientv3.Config{Endpoints: endpoints[:1], Logger: zap.NewNop()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.client.Close() })
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if _, err := c.client.Put(ctx, "first", "1", clientv3.WithPrevKV()); err != nil {
		t.Fatal(err)
	}
	return c
}

func (m *member) kill() {
	if m.process.ProcessState == nil {
		_ = m.process.Process.Kill()
		_ = m.process.Wait()
	}
}

func free(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// page is what a member shows; false: it does not answer.
func (m *member) page(t *testing.T) ([]byte, bool) {
	t.Helper()
	response, err := http.Get("http://" + m.client + "/metrics")
	if err != nil {
		return nil, false
	}
	defer response.Body.Close()
	page, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK {
		t.Fatalf("%s: %d, %v", m.client, response.StatusCode, err)
	}
	return page, true
}
