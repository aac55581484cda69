package browser

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// program is the server under test, built once.
var program string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "browser")
	if err == nil {
		program = filepath.Join(dir, "quorate")
		build := exec.Command("go", "build", "-o", program, "./cmd/quorate")
		build.Dir, build.Stderr, build.Env = "../..", os.Stderr, append(os.Environ(), "CGO_ENABLED=0")
		err = build.Run()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "browser: build quorate:", err)
		os.Exit(1)
	}
	status := m.Run()
	_ = os.RemoveAll(dir)
	os.Exit(status)
}

// member is one process.
type member struct {
	name, client, console string
	process               *exec.Cmd
}

// cluster is three members; the console of the first one administers, that of the others reads. All have an output of the audit, and
// the first two are encrypted.
type cluster struct {
	t       *testing.T
	members []*member
}

// nextPort is of those below the ports that the kernel gives to connections, which take one between two looks, and above those of
// package testnet.
var nextPort = 30000 + os.Getpid()%90*30

func address(t *testing.T) string {
	t.Helper()
	for range 2700 {
		address := fmt.Sprintf("127.0.0.1:%d", nextPort)
		nextPort = 30000 + (nextPort-30000+1)%2700
		if l, err := net.Listen("tcp", address); err == nil {
			_ = l.Close()
			return address
		}
	}
	t.Fatal("no port from 30000 to 32699 is free")
	return ""
}

func start(t *testing.T) *cluster {
	t.Helper()
	c := &cluster{t: t}
	dir := t.TempDir()
	key := filepath.Join(dir, "key")
	if err := os.WriteFile(key, []byte("TXVzdCBub3QgYmUgdXNlZCBlbHNld2hlcmUsIGV2ZXI="), 0o400); err != nil {
		t.Fatal(err)
	}
	var peers, initial []string
	for i := range 3 {
		peers = append(peers, "http://"+address(t))
		initial = append(initial, fmt.Sprintf("m%d=%s", i+1, peers[i]))
	}
	for i := range 3 {
		m := &member{name: fmt.Sprintf("m%d", i+1), client: address(t), console: address(t)}
		mode := "read-only"
		if i == 0 {
			mode = "admin"
		}
		m.process = exec.Command(program, "--name", m.name, "--data-dir", filepath.Join(dir, m.name),
			"--listen-client-urls=http://"+m.client, "--advertise-client-urls=http://"+m.client, "--listen-peer-urls="+peers[i],
			"--initial-advertise-peer-urls="+peers[i], "--initial-cluster="+strings.Join(initial, ","),
			"--listen-console-urls=http://"+m.console, "--console="+mode, "--level-policy=now", "--log-level=warn",
			"--audit-log="+filepath.Join("audit", m.name+".log"))
		m.process.Dir = dir // pages and pictures show the path
		if i < 2 {
			m.process.Args = append(m.process.Args, "--encryption-key-file="+key)
		}
		var said bytes.Buffer
		m.process.Stderr = &said
		if err := m.process.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			_ = m.process.Process.Kill()
			_ = m.process.Wait()
			if t.Failed() {
				t.Logf("%s said: %s", m.name, said.String()[max(0, said.Len()-4000):])
			}
		})
		c.members = append(c.members, m)
	}
	for _, m := range c.members {
		until(t, m.name+" is ready", func() bool {
			answer, err := http.Get("http://" + m.client + "/readyz")
			if err != nil {
				return false
			}
			_ = answer.Body.Close()
			return answer.StatusCode == http.StatusOK
		})
	}
	return c
}

// quorate runs a subcommand with the endpoint of the first member that runs.
func (c *cluster) quorate(stdin string, args ...string) string {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Env = append(os.Environ(), "ETCDCTL_ENDPOINTS="+c.members[0].client)
	cmd.Stdin = strings.NewReader(stdin)
	out, err := cmd.CombinedOutput()
	if err != nil {
		c.t.Fatalf("quorate %q: %v: %s", args, err, out)
	}
	return string(out)
}

func (c *cluster) kill(m *member) {
	_ = m.process.Process.Kill()
	_ = m.process.Wait()
}

const patience = 30 * time.Second

// until polls until something is so.
func until(t *testing.T, what string, is func() bool) {
	t.Helper()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(patience); !is(); <-tick.C {
		if time.Now().After(end) {
			t.Fatalf("timed out: %s", what)
		}
	}
}
