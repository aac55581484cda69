package process_test

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/quorate/quorate/internal/base/testnet"
)

// startPiped starts a member of its own whose standard error is a pipe, which takes nothing more from the start.
func startPiped(t *testing.T, env ...string) (c *cluster, log *os.File) {
	t.Helper()
	reader, writer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	fillPipe(t, writer)
	n := &node{name: "m1", client: "http://" + testnet.Address(t), peer: testnet.Address(t), dir: t.TempDir()}
	c = &cluster{t: t, binary: buildBinary(t), nodes: []*node{n}}
	n.cmd = exec.Command(c.binary, "--name=m1", "--data-dir="+n.dir, "--listen-client-urls="+n.client,
		"--advertise-client-urls="+n.client, "--listen-peer-urls=http://"+n.peer,
		"--initial-advertise-peer-urls=http://"+n.peer, "--initial-cluster=m1=http://"+n.peer)
	n.cmd.Stderr = writer
	n.cmd.Env = append(os.Environ(), env...)
	if err := n.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	n.exited = make(chan struct{})
	go func() {
		_ = n.cmd.Wait()
		close(n.exited)
	}()
	t.Cleanup(func() {
		n.kill()
		_ = reader.Close()
	})
	if err := writer.Close(); err != nil {
		t.Fatal(err)
	}
	return c, reader
}

// fillPipe writes to a pipe until it takes nothing more.
func fillPipe(t *testing.T, pipe *os.File) {
	t.Helper()
	fd := int(pipe.Fd()) // which makes it block again
	if err := syscall.SetNonblock(fd, true); err != nil {
		t.Fatal(err)
	}
	chunk := bytes.Repeat([]byte("-"), 4096)
	for len(chunk) > 0 {
		if _, err := syscall.Write(fd, chunk); errors.Is(err, syscall.EAGAIN) {
			chunk = chunk[:len(chunk)/2]
		} else if err != nil {
			t.Fatal(err)
		}
	}
	if err := syscall.SetNonblock(fd, false); err != nil {
		t.Fatal(err)
	}
}

// Ensure that a member whose log no process takes goes on to serve, and that the log comes once a process reads it.
func TestLog_blocked(t *testing.T) {
	t.Parallel()
	c, log := startPiped(t)
	n := c.nodes[0]
	waitServing(t, n)
	client := c.connect(n)
	defer client.Close()
	ctx := t.Context()
	// An alarm makes each health check log a line.
	status, err := client.Status(ctx, n.client)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := pb.NewMaintenanceClient(client.ActiveConnection()).Alarm(ctx, &pb.AlarmRequest{
		Action: pb.AlarmRequest_ACTIVATE, MemberID: status.Header.MemberId, Alarm: pb.AlarmType_NOSPACE}); err != nil {
		t.Fatal(err)
	}
	const lines, askers = 3000, 4
	var asking sync.WaitGroup
	for range askers {
		asking.Go(func() {
			for range lines / askers {
				if code, err := httpStatus(n.client + "/health"); err != nil || code != http.StatusServiceUnavailable {
					t.Errorf("/health: got %d, %v; want 503", code, err)
					return
				}
			}
		})
	}
	asking.Wait()
	if _, err := client.AlarmDisarm(ctx, &clientv3.AlarmMember{}); err != nil {
		t.Fatal(err)
	}
	for i := range 100 {
		if _, err := client.Put(ctx, fmt.Sprintf("k%d", i), "v"); err != nil {
			t.Fatalf("put %d: %v", i, err)
		}
	}
	if code, err := httpStatus(n.client + "/readyz"); err != nil || code != http.StatusOK {
		t.Errorf("/readyz: got %d, %v", code, err)
	}
	got := 0
	text := bufio.NewReader(log)
	for got < lines {
		line, err := text.ReadString('\n')
		if err != nil {
			t.Fatalf("after %d lines: %v", got, err)
		}
		if strings.Contains(line, "health check failed") {
			got++
		}
	}
	if err := n.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if rest, err := io.ReadAll(text); err != nil || !strings.Contains(string(rest), `"msg":"stopped"`) {
		t.Errorf("the end of the log: %v, %q", err, rest)
	}
	<-n.exited
}

// Ensure that a member ends when it is told to although no process takes its log, and outlives the end of its reader.
func TestLog_readerGone(t *testing.T) {
	t.Parallel()
	c, log := startPiped(t)
	n := c.nodes[0]
	waitServing(t, n)
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	client := c.connect(n)
	defer client.Close()
	if _, err := client.Put(t.Context(), "k", "v"); err != nil {
		t.Fatal(err)
	}
	if err := n.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	<-n.exited
	if code := n.cmd.ProcessState.ExitCode(); code != 0 {
		t.Errorf("exit status %d, want 0", code)
	}
}

func httpStatus(url string) (int, error) {
	answer, err := http.Get(url)
	if err != nil {
		return 0, err
	}
	_, err = io.Copy(io.Discard, answer.Body)
	return answer.StatusCode, errors.Join(err, answer.Body.Close())
}

// waitServing waits until a member says that it is ready.
func waitServing(t *testing.T, n *node) {
	t.Helper()
	poll := time.NewTicker(20 * time.Millisecond)
	defer poll.Stop()
	deadline := time.After(30 * time.Second)
	for {
		if code, err := httpStatus(n.client + "/readyz"); err == nil && code == http.StatusOK {
			return
		}
		select {
		case <-poll.C:
		case <-n.exited:
			t.Fatalf("%s exited while it should start", n.name)
		case <-deadline:
			t.Fatalf("%s is not ready after 30s", n.name)
		}
	}
}
