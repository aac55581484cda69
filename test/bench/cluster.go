package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/quorate/quorate/test/bench/slowsync"
)

const memberCount = 3

// ready is what etcd logs when a member has joined and answers clients.
const ready = "ready to serve client requests"

// server is a binary under test. It takes etcd's flags.
type server struct {
	name, path string
	flags      []string // beside those that all servers get
	slowDisks  bool     // every member gets a disk whose syncs can be made slow
}

// member is one process of a cluster, over several lives.
type member struct {
	name, clientAddr, peerAddr string
	met                        string // where the others find peerAddr, if that is far away
	id                         uint64 // known to leader
	joins                      bool   // a cluster that is there already
	process                    *os.Process
	disk                       *slowsync.Disk // nil: its disk is what it is
	log                        *logWatch
	ended                      chan struct{} // closed when the process has ended
}

// logWatch keeps the end of a member's output and notes when it got ready.
type logWatch struct {
	mu    sync.Mutex
	tail  []byte
	ready chan time.Time // gets one value
	told  bool
}

func (w *logWatch) Write(p []byte) (int, error) {
	now := time.Now()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.tail = append(w.tail, p...)
	if !w.told && bytes.Contains(w.tail, []byte(ready)) {
		w.told = true
		w.ready <- now
	}
	if len(w.tail) > 64<<10 {
		w.tail = append([]byte(nil), w.tail[len(w.tail)-4<<10:]...)
	}
	return len(p), nil
}

func (w *logWatch) end() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return string(w.tail[max(0, len(w.tail)-2000):])
}

// serverFlag lets a command line name servers.
func serverFlag(flags *flag.FlagSet, servers *[]server) {
	flags.Func("server", "NAME=PATH of a binary that takes etcd's flags; repeat it, the first is the base of ratios",
		func(text string) error {
			name, path, ok := strings.Cut(text, "=")
			*servers = append(*servers, server{name: name, path: path})
			if !ok {
				return errors.New("want NAME=PATH")
			}
			return nil
		})
}

// cluster is three members of one server.
type cluster struct {
	server  server
	dir     string
	members []*member
	control *clientv3.Client // to all members, for questions outside of a measurement
}

// newCluster starts a cluster on fresh data below dir and returns once every member serves, with how long that took.
func newCluster(ctx context.Context, s server, dir string) (*cluster, time.Duration, error) {
	return newClusterOf(ctx, s, dir, memberCount, func(address string) (string, error) { return address, nil })
}

// newClusterOf starts a cluster of so many members, who meet each other where front puts their addresses.
func newClusterOf(
	ctx context.Context, s server, dir string, size int, front func(address string) (string, error),
) (*cluster, time.Duration, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, 0, err
	}
	own, err := os.MkdirTemp(dir, s.name+"-")
	if err != nil {
		return nil, 0, err
	}
	c := &cluster{server: s, dir: own}
	addresses, err := freeAddresses(2 * size)
	if err != nil {
		return nil, 0, errors.Join(err, c.remove())
	}
	endpoints := make([]string, size)
	for i := range size {
		met, err := front(addresses[2*i+1])
		if err != nil {
			return nil, 0, errors.Join(err, c.remove())
		}
		c.members = append(c.members, &member{
			name: fmt.Sprintf("m%d", i+1), clientAddr: addresses[2*i], peerAddr: addresses[2*i+1], met: met,
		})
		if s.slowDisks {
			c.members[i].disk = &slowsync.Disk{}
		}
		endpoints[i] = addresses[2*i]
	}
	took, err := c.start(ctx)
	if err != nil {
		return nil, 0, errors.Join(err, c.remove())
	}
	if c.control, err = connect(endpoints...); err != nil {
		return nil, 0, errors.Join(err, c.remove())
	}
	return c, took, nil
}

// start launches all members, on whatever data they have, and waits until all of them are ready.
func (c *cluster) start(ctx context.Context) (time.Duration, error) {
	begun := time.Now()
	for _, m := range c.members {
		if err := c.launch(m); err != nil {
			return 0, err
		}
	}
	last := begun
	for _, m := range c.members {
		at, err := c.awaitReady(ctx, m)
		if err != nil {
			return 0, err
		}
		if at.After(last) {
			last = at
		}
	}
	return last.Sub(begun), nil
}

func (c *cluster) awaitReady(ctx context.Context, m *member) (time.Time, error) {
	select {
	case at := <-m.log.ready:
		return at, nil
	case <-m.ended:
		return time.Time{}, fmt.Errorf("%s %s ended before it was ready:\n%s", c.server.name, m.name, m.log.end())
	case <-time.After(time.Minute):
		return time.Time{}, fmt.Errorf("%s %s is not ready after a minute:\n%s", c.server.name, m.name, m.log.end())
	case <-ctx.Done():
		return time.Time{}, ctx.Err()
	}
}

func (c *cluster) launch(m *member) error {
	var initial []string
	for _, each := range c.members {
		initial = append(initial, each.name+"=http://"+each.met)
	}
	state := "new"
	if m.joins {
		state = "existing"
	}
	command := exec.Command(c.server.path,
		"--name="+m.name, "--data-dir="+filepath.Join(c.dir, m.name),
		"--listen-client-urls=http://"+m.clientAddr, "--advertise-client-urls=http://"+m.clientAddr,
		"--listen-peer-urls=http://"+m.peerAddr, "--initial-advertise-peer-urls=http://"+m.met,
		"--initial-cluster="+strings.Join(initial, ","), "--initial-cluster-state="+state,
		"--initial-cluster-token="+filepath.Base(c.dir), fmt.Sprintf("--quota-backend-bytes=%d", 8<<30),
		"--heartbeat-interval=100", "--election-timeout=1000")
	command.Args = append(command.Args, c.server.flags...)
	m.log = &logWatch{ready: make(chan time.Time, 1)}
	command.Stdout, command.Stderr = m.log, m.log
	// A member does not outlive the run, however that ends, nor does it see the terminal's interrupt.
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	start := command.Start
	if m.disk != nil {
		start = func() error { return m.disk.Start(command) }
	}
	if err := start(); err != nil {
		return err
	}
	m.process = command.Process
	ended := make(chan struct{})
	m.ended = ended
	go func() {
		_ = command.Wait() // it ends by a signal
		close(ended)
	}()
	return nil
}

// stop ends all members in good order.
func (c *cluster) stop() {
	for _, m := range c.members {
		m.signal(syscall.SIGTERM)
	}
	for _, m := range c.members {
		if m.process == nil {
			continue
		}
		select {
		case <-m.ended:
		case <-time.After(10 * time.Second):
			m.signal(syscall.SIGKILL)
			<-m.ended
		}
	}
}

// signal does nothing to a member that has ended: its number may be another process's by now.
func (m *member) signal(s syscall.Signal) {
	if m.process == nil {
		return
	}
	select {
	case <-m.ended:
	default:
		_ = m.process.Signal(s)
	}
}

// remove ends the members and takes their data away.
func (c *cluster) remove() error {
	if c.control != nil {
		_ = c.control.Close() // says only that it was cut off
	}
	c.stop()
	return os.RemoveAll(c.dir)
}

// leader asks until a member names one that is among the cluster's.
func (c *cluster) leader(ctx context.Context) (*member, error) {
	for ctx.Err() == nil {
		ids := map[uint64]*member{}
		named := uint64(0)
		for _, m := range c.members {
			if status, err := c.control.Status(ctx, m.clientAddr); err == nil {
				m.id, named = status.Header.MemberId, status.Leader
				ids[m.id] = m
			}
		}
		if m := ids[named]; m != nil && len(ids) == len(c.members) {
			return m, nil
		}
		time.Sleep(50 * time.Millisecond)
	}
	return nil, ctx.Err()
}

func (c *cluster) cpuTime() (sum time.Duration) {
	for _, m := range c.members {
		sum += cpuTime(m.process.Pid)
	}
	return sum
}

// resident is the resident set of the largest member in MiB, by a line of its status.
func (c *cluster) resident(line string) float64 {
	largest := int64(0)
	for _, m := range c.members {
		largest = max(largest, residentKiB(m.process.Pid, line))
	}
	return float64(largest) / 1024
}

func (c *cluster) forgetPeaks() {
	for _, m := range c.members {
		forgetPeak(m.process.Pid)
	}
}

// freeAddresses asks the kernel for ports. All are held until the last is known, so that they differ.
func freeAddresses(n int) ([]string, error) {
	addresses := make([]string, n)
	for i := range addresses {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		defer listener.Close()
		addresses[i] = listener.Addr().String()
	}
	return addresses, nil
}

func connect(endpoints ...string) (*clientv3.Client, error) {
	return clientv3.New(clientv3.Config{Endpoints: endpoints, DialTimeout: 5 * time.Second})
}
