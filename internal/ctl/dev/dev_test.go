package dev_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/quorate/quorate/internal/ctl/dev"
)

// story collects what a cluster prints, and calls back when it has printed something.
type story struct {
	mu   sync.Mutex
	text bytes.Buffer
	when string
	then func()
}

func (s *story) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n, err := s.text.Write(p)
	if s.then != nil && strings.Contains(s.text.String(), s.when) {
		s.then()
		s.then = nil
	}
	return n, err
}

func (s *story) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

func (s *story) wants(t *testing.T, parts ...string) {
	t.Helper()
	text := s.String()
	rest := text
	for _, part := range parts {
		_, after, found := strings.Cut(rest, part)
		if !found {
			t.Fatalf("the story lacks %q (in this order):\n%s", part, text)
		}
		rest = after
	}
}

// basePort finds ports for seven members that no process uses: the kernel's choice is outside of them, it is only asked where
// it chooses at the moment.
func basePort(t *testing.T) int {
	t.Helper()
	for port := 20000 + os.Getpid()%1000*10; port < 60000; port += 100 {
		free := true
		for p := port; p < port+70; p++ {
			l, err := net.Listen("tcp", "127.0.0.1:"+strconv.Itoa(p))
			if err != nil {
				free = false
				break
			}
			l.Close()
		}
		if free {
			return port
		}
	}
	t.Fatal("no free ports")
	return 0
}

var quick = dev.Pace{Poll: 200 * time.Millisecond, Restart: time.Millisecond, Window: time.Hour,
	Grace: time.Second, Patience: time.Hour}

func options(t *testing.T, mode string) (dev.Options, *story) {
	t.Helper()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	out := &story{}
	return dev.Options{Dir: filepath.Join(t.TempDir(), "d"), BasePort: basePort(t), Program: program, Self: "quorate",
		Environ: append(os.Environ(), fakeVariable+"="+mode, "ETCD_NAME=other"), Out: out, Pace: quick}, out
}

// runUntil runs a cluster until it has printed some words.
func runUntil(t *testing.T, o dev.Options, out *story, words string) error {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	out.when, out.then = words, cancel
	return dev.Run(ctx, o)
}

func TestRun_life(t *testing.T) {
	o, out := options(t, "live")
	if err := runUntil(t, o, out, "m3 is follower"); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	out.wants(t, "starting 3 members in", "3 members ready after", "export ETCDCTL_ENDPOINTS=127.0.0.1:"+
		strconv.Itoa(o.BasePort)+",127.0.0.1:"+strconv.Itoa(o.BasePort+10)+",", "quorate put hello world",
		"etcdctl put hello world", "quorate status", "m1 is leader in term 3, revision 5", "m2 is follower",
		"stopping 3 members", "stopped; the data stays in "+o.Dir)
	if log, err := os.ReadFile(filepath.Join(o.Dir, "m3.log")); err != nil || len(log) == 0 {
		t.Errorf("the log of m3: got %q, %v", log, err)
	}
	// The directory remembers its shape, and accepts no other.
	again, story := o, &story{}
	again.BasePort, again.Out = 0, story
	if err := runUntil(t, again, story, "m3 is follower"); err != nil {
		t.Fatalf("again: %v\n%s", err, story)
	}
	again.Members = 5
	if err := dev.Run(t.Context(), again); !errors.Is(err, dev.ErrPlan) ||
		!strings.Contains(err.Error(), "holds a cluster of 3: leave out --members") {
		t.Errorf("five members: got %v", err)
	}
	again.Members, again.BasePort = 3, o.BasePort+1
	if err := dev.Run(t.Context(), again); !errors.Is(err, dev.ErrPlan) ||
		!strings.Contains(err.Error(), "leave out --base-port") {
		t.Errorf("other ports: got %v", err)
	}
}

func TestRun_terminal(t *testing.T) {
	o, out := options(t, "live")
	o.Members, o.Terminal, o.Width = 1, true, func() int { return 40 }
	if err := runUntil(t, o, out, "\x1b[2A"); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	out.wants(t, "1 member ready after", "MEMBER  ROLE    TERM  INDEX  APPLIED  LA\x1b[K\n", "m1      leader     3",
		"\x1b[2A\x1b[Jstopping 1 member\n")
}

// Ensure that a member that dies is reported with its last error and started again.
func TestRun_restart(t *testing.T) {
	o, out := options(t, "m2 dies once")
	if err := runUntil(t, o, out, "m3 is follower"); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	out.wants(t, "m2 exited with status 1: disk failed: no sectors (log: "+filepath.Join(o.Dir, "m2.log")+
		"); starting it again in 1ms", "3 members ready")
}

func TestRun_hopeless(t *testing.T) {
	o, out := options(t, "die")
	o.Members = 1
	err := runUntil(t, o, out, "ready")
	if !errors.Is(err, dev.ErrAllDown) {
		t.Fatalf("got %v, want ErrAllDown\n%s", err, out)
	}
	out.wants(t, "m1 died 6 times within 60 minutes and stays down")
	if n := strings.Count(out.String(), "starting it again"); n != dev.MaxDeaths {
		t.Errorf("got %d restarts, want %d", n, dev.MaxDeaths)
	}
}

// Ensure that a member that does not know its flags is not tried again.
func TestRun_unknownFlag(t *testing.T) {
	o, out := options(t, "live")
	o.Members, o.Args = 1, []string{"--speed=9"}
	if err := runUntil(t, o, out, "ready"); !errors.Is(err, dev.ErrAllDown) {
		t.Fatalf("got %v, want ErrAllDown\n%s", err, out)
	}
	out.wants(t, "m1 does not understand its flags and stays down: quorate: flag provided but not defined: -speed")
}

// Ensure that a member that panics is not told to mend its flags, and is tried again.
func TestRun_panic(t *testing.T) {
	o, out := options(t, "panic")
	o.Members = 1
	if err := runUntil(t, o, out, "ready"); !errors.Is(err, dev.ErrAllDown) {
		t.Fatalf("got %v, want ErrAllDown\n%s", err, out)
	}
	out.wants(t, "m1 exited with status 2: panic: a broken invariant", "starting it again", "m1 died 6 times")
	if strings.Contains(out.String(), "does not understand its flags") {
		t.Errorf("it blames the flags:\n%s", out)
	}
}

func TestRun_stubborn(t *testing.T) {
	o, out := options(t, "stubborn")
	o.Members, o.Pace.Grace = 1, 50*time.Millisecond
	if err := runUntil(t, o, out, "m1 is leader"); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	out.wants(t, "stopping 1 member", "m1 does not stop within 50ms, killing it", "stopped; the data stays")
}

func TestRun_refusals(t *testing.T) {
	o, _ := options(t, "live")
	l, err := net.Listen("tcp", "127.0.0.1:"+strconv.Itoa(o.BasePort+11))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	err = dev.Run(t.Context(), o)
	want := fmt.Sprintf("port %d, for peers of m2, is taken by ", o.BasePort+11)
	if !errors.Is(err, dev.ErrPortTaken) || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("a port in use: got %v, want %s…", err, want)
	}
	for members, want := range map[int]string{8: "choose 1 to 7", -1: "choose 1 to 7"} {
		bad := o
		bad.Members = members
		if err := dev.Run(t.Context(), bad); !errors.Is(err, dev.ErrPlan) || !strings.Contains(err.Error(), want) {
			t.Errorf("%d members: got %v, want %s", members, err, want)
		}
	}
	bad := o
	bad.BasePort = 65530
	if err := dev.Run(t.Context(), bad); !errors.Is(err, dev.ErrPlan) {
		t.Errorf("ports beyond the last: got %v", err)
	}
	bad = o
	bad.Dir = t.TempDir()
	if err := os.WriteFile(filepath.Join(bad.Dir, "thesis.tex"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := dev.Run(t.Context(), bad); !errors.Is(err, dev.ErrPlan) || !strings.Contains(err.Error(), "thesis.tex") {
		t.Errorf("somebody's directory: got %v", err)
	}
	bad.Dir = t.TempDir()
	if err := os.WriteFile(filepath.Join(bad.Dir, "dev.json"), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := dev.Run(t.Context(), bad); !errors.Is(err, dev.ErrPlan) || !strings.Contains(err.Error(), "is damaged") {
		t.Errorf("a damaged record: got %v", err)
	}
}

// Ensure that one directory has one running cluster.
func TestRun_locked(t *testing.T) {
	o, out := options(t, "live")
	o.Members = 1
	second := make(chan error, 1)
	ctx, cancel := context.WithCancel(t.Context())
	out.when, out.then = "ready", func() {
		go func() {
			defer cancel()
			other := o
			other.Out = &story{}
			second <- dev.Run(ctx, other)
		}()
	}
	if err := dev.Run(ctx, o); err != nil {
		t.Fatal(err)
	}
	err := <-second
	if want := "is running already (process " + strconv.Itoa(os.Getpid()) + ")"; !errors.Is(err, dev.ErrLocked) ||
		!strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want …%s…", err, want)
	}
}

// Ensure that a member which was killed says so, without words that have nothing to do with it.
func TestRun_killedMember(t *testing.T) {
	o, out := options(t, "live")
	o.Members = 1
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	o.Terminal = true // the table shows the process
	out.when, out.then = "\x1b[2A", func() {
		text := out.text.String() // the lock is held by Write
		row := strings.Fields(text[strings.LastIndex(text, "m1      leader"):])
		pid, err := strconv.Atoi(strings.TrimSuffix(row[9], "\x1b[K")) // the size has two words
		if err != nil {
			panic(err)
		}
		syscall.Kill(pid, syscall.SIGKILL)
		go func() {
			out.mu.Lock()
			out.when, out.then = "starting it again", cancel
			out.mu.Unlock()
			out.Write(nil)
		}()
	}
	if err := dev.Run(ctx, o); err != nil {
		t.Fatal(err)
	}
	out.wants(t, "m1 was ended by signal killed (log: ")
}
