//go:build unix

package process_test

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// newcomer is a person with a clone of the repository, Go, and the README.
type newcomer struct {
	t        *testing.T
	clusters int
	base     int // port of the first member
	dev      *exec.Cmd
	said     *words
	ended    chan struct{}
}

// words are what a process has said so far.
type words struct {
	mu  sync.Mutex
	all bytes.Buffer
}

func (w *words) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.all.Write(p)
}

func (w *words) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.all.String()
}

// steps says how each command of the README is run, on ports and in a directory of the test's own.
var steps = map[string]func(n *newcomer, args []string, shown string){
	"go run ./cmd/quorate dev":                (*newcomer).startDev,
	"go test ./...":                           func(*newcomer, []string, string) {}, // this is one of the tests that it runs
	"go run ./cmd/quorate put greeting hello": (*newcomer).ask,
	"go run ./cmd/quorate get greeting":       (*newcomer).ask,
	"go run ./cmd/quorate member list":        (*newcomer).ask,
	"go run ./cmd/quorate dev --geo 50ms":     (*newcomer).startDev,
	"go run ./cmd/quorate latency":            (*newcomer).ask,
	// The new machine is an example: the plan is made, and the change is not. TestReplace* make such changes.
	"quorate member replace m2 --name m4 --peer-urls http://10.0.4.9:2380": func(n *newcomer, args []string, _ string) {
		n.ask(append([]string{"run", "./cmd/quorate"}, append(args, "--dry-run")...), "")
	},
}

// TestReadme runs every command of the README in its order, and wants the output that stands there.
func TestReadme(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	n := &newcomer{t: t}
	defer n.stopDev()
	ran := 0
	for block := range strings.SplitSeq(string(text), "```") {
		for _, part := range strings.Split(block, "\n$ ")[1:] {
			line, shown, _ := strings.Cut(part, "\n")
			command, _, _ := strings.Cut(line, "#")
			command = strings.TrimSpace(command)
			step, known := steps[command]
			if !known {
				t.Fatalf("no test runs this command of the README: %s", command)
			}
			step(n, strings.Fields(command)[1:], shown)
			ran++
		}
	}
	if ran != len(steps) {
		t.Errorf("the README has %d commands, and %d are known: remove those that are gone", ran, len(steps))
	}
}

// startDev runs a development cluster until it is ready, in the place of the one before.
func (n *newcomer) startDev(args []string, _ string) {
	n.t.Helper()
	n.stopDev()
	n.clusters++
	dir := filepath.Join(n.t.TempDir(), fmt.Sprintf("dev%d", n.clusters))
	for range 5 {
		n.base = basePort(n.t)
		n.said, n.ended = &words{}, make(chan struct{})
		n.dev = n.command(append(args, "--dir", dir, "--base-port", fmt.Sprint(n.base)))
		n.dev.Stdout, n.dev.Stderr = n.said, n.said
		n.dev.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // ^C reaches all that the command has started
		if err := n.dev.Start(); err != nil {
			n.t.Fatal(err)
		}
		go func(dev *exec.Cmd, ended chan struct{}) { _ = dev.Wait(); close(ended) }(n.dev, n.ended)
		if n.ready() {
			return
		}
	}
	n.t.Fatalf("no cluster:\n%s", n.said)
}

// ready waits until the members are, or the command has ended because another process took a port meanwhile.
func (n *newcomer) ready() bool {
	n.t.Helper()
	look, end := time.NewTicker(50*time.Millisecond), time.After(2*patience)
	defer look.Stop()
	for {
		select {
		case <-look.C:
			if strings.Contains(n.said.String(), "3 members ready") {
				return true
			}
		case <-n.ended:
			return false
		case <-end:
			n.t.Fatalf("not ready:\n%s", n.said)
		}
	}
}

// stopDev does what ^C does.
func (n *newcomer) stopDev() {
	if n.dev == nil {
		return
	}
	for _, signal := range []syscall.Signal{syscall.SIGINT, syscall.SIGKILL} {
		_ = syscall.Kill(-n.dev.Process.Pid, signal)
		select {
		case <-n.ended:
			if signal == syscall.SIGKILL || !strings.Contains(n.said.String(), "stopped; the data stays in") {
				n.t.Errorf("the cluster did not stop as it should:\n%s", n.said)
			}
			n.dev = nil
			return
		case <-time.After(patience):
		}
	}
	n.t.Errorf("the cluster does not end:\n%s", n.said)
}

// ask runs a command that ends, and wants what the README shows of its output.
func (n *newcomer) ask(args []string, shown string) {
	n.t.Helper()
	command := n.command(args)
	out, err := command.CombinedOutput()
	if err != nil {
		n.t.Fatalf("%s: %v\n%s", command, err, out)
	}
	if shown = strings.TrimSpace(shown); shown != "" && strings.TrimSpace(string(out)) != shown {
		n.t.Errorf("%s said\n%sand the README has\n%s", command, out, shown)
	}
	if len(out) == 0 {
		n.t.Errorf("%s says nothing", command)
	}
}

func (n *newcomer) command(args []string) *exec.Cmd {
	command := exec.CommandContext(n.t.Context(), "go", args...)
	command.Dir = "../.."
	command.Env = append(os.Environ(), fmt.Sprintf("QUORATE_ENDPOINTS=127.0.0.1:%d", n.base))
	return command
}

// basePort finds ports for three members of `quorate dev`.
func basePort(t *testing.T) int {
	t.Helper()
	for port := 21000 + os.Getpid()%1000*10; port < 60000; port += 30 {
		free := true
		for p := port; p < port+30 && free; p++ {
			l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", p))
			if free = err == nil; free {
				_ = l.Close()
			}
		}
		if free {
			return port
		}
	}
	t.Fatal("no free ports")
	return 0
}
