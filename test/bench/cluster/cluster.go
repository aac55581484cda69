package cluster

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/quorate/quorate/test/slowsync"
)

const (
	memberCount = 3
	readyLimit  = 5 * time.Minute // with ten million keys etcd needs most of one
	stopLimit   = time.Minute
)

// ready is what etcd logs when a member has joined and answers clients.
const ready = "ready to serve client requests"

// Server is a binary under test. It takes etcd's flags.
type Server struct {
	Name, Path string
	Flags      []string // beside those that all servers get
	Users      bool     // authentication is enabled before anything is measured, and clients log in
	Features   []string // names of features that are turned on, sorted; quorate only
}

// ParseServer reads NAME=PATH, or PATH, each also with ",users=on" or features such as ",audit=on" behind.
func ParseServer(text string) (Server, error) {
	text, options, more := strings.Cut(text, ",")
	name, path, ok := strings.Cut(text, "=")
	if !ok {
		name, path = text[strings.LastIndexByte(text, '/')+1:], text
	}
	s := Server{Name: name, Path: path}
	for option := range strings.SplitSeq(options, ",") {
		switch {
		case option == "users=on":
			s.Users = true
		case more:
			feature, on := strings.CutSuffix(option, "=on")
			if _, known := features[feature]; !on || !known || slices.Contains(s.Features, feature) {
				name = ""
			}
			s.Features = append(s.Features, feature)
		}
	}
	if name == "" || path == "" {
		return Server{}, fmt.Errorf("want NAME=PATH, or NAME=PATH with ,users=on or one of %s behind, as in ,audit=on",
			strings.Join(featureNames(), ", "))
	}
	slices.Sort(s.Features)
	return s, nil
}

// Conditions are what the members of a cluster run under. The zero Conditions are three members beside each other.
type Conditions struct {
	Members   int                              // zero: three
	Way       func(from, to int) time.Duration // one way between two of them, over Links; nil: they are beside each other
	Flags     []string                         // for the members of each server
	SlowDisks bool                             // every member gets a disk whose syncs can be made slow
	TLS       bool                             // every member serves its clients by https, too
	GroupMiB  int64                            // limit of a memory control group for each member; zero: it has none
}

// Member is one process of a cluster, over several lives.
type Member struct {
	Name, ClientAddr, PeerAddr string
	SecureAddr                 string // where it serves its clients by https; empty: nowhere
	met                        string // where the others find PeerAddr, if that is far away
	ID                         uint64 // known to leader
	joins                      bool   // a cluster that is there already
	process                    *os.Process
	Disk                       *slowsync.Disk // nil: its disk is what it is
	log                        *logWatch
	Ended                      chan struct{} // closed when the process has ended
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

// LastWords is the end of what the member wrote to its log.
func (m *Member) LastWords() string { return m.log.end() }

// Names are what servers are called, in their order.
func Names(servers []Server) (all []string) {
	for _, s := range servers {
		all = append(all, s.Name)
	}
	return all
}

// Cluster is the members of one server.
type Cluster struct {
	Server  Server
	Took    time.Duration // from the begin until every member served
	Links   *Links        // nil: the members are beside each other
	Group   int64         // MiB that each member may take before it is killed; zero: the machine allows no limit
	groups  []string      // memory control groups that were made for that
	dir     string
	Members []*Member
	named   int              // members that have a name so far
	Control *clientv3.Client // to all members, for questions outside of a measurement
}

// Start starts a cluster on fresh data below dir, and returns once every member serves.
func Start(ctx context.Context, s Server, dir string, on Conditions) (*Cluster, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	own, err := os.MkdirTemp(dir, s.Name+"-")
	if err == nil {
		own, err = filepath.Abs(own) // URLs of features name it
	}
	if err != nil {
		return nil, err
	}
	s.Flags = append(slices.Clone(s.Flags), on.Flags...)
	c := &Cluster{Server: s, dir: own}
	if err := c.begin(ctx, on); err != nil {
		return nil, errors.Join(err, c.Remove())
	}
	return c, nil
}

func (c *Cluster) begin(ctx context.Context, on Conditions) (err error) {
	if err := c.makeFiles(); err != nil {
		return err
	}
	size := cmp.Or(on.Members, memberCount)
	if on.Way != nil {
		c.Links = newLinks(size, on.Way)
	}
	addresses, err := freeAddresses(3 * size)
	if err != nil {
		return err
	}
	for i := range size {
		met := addresses[2*i+1]
		if c.Links != nil {
			if met, err = c.Links.front(met); err != nil {
				return err
			}
		}
		c.named++
		m := &Member{Name: fmt.Sprintf("m%d", c.named), ClientAddr: addresses[2*i], PeerAddr: addresses[2*i+1], met: met}
		if on.TLS {
			m.SecureAddr = addresses[2*size+i]
		}
		if on.SlowDisks {
			m.Disk = &slowsync.Disk{}
		}
		c.Members = append(c.Members, m)
	}
	if c.Took, err = c.Start(ctx); err != nil {
		return err
	}
	if on.GroupMiB > 0 {
		var pids []int
		for _, m := range c.Members {
			pids = append(pids, m.process.Pid)
		}
		var confined bool
		if c.groups, confined = confineAll(pids, on.GroupMiB); confined {
			c.Group = on.GroupMiB
		}
	}
	var endpoints []string
	for _, m := range c.Members {
		endpoints = append(endpoints, m.ClientAddr)
	}
	if c.Control, err = Connect(endpoints...); err == nil && c.Server.Users {
		err = c.enableUsers(ctx, endpoints)
	}
	if err == nil {
		err = c.beginFeatures(ctx)
	}
	return err
}

// Start launches all members, on whatever data they have, and waits until all of them are ready.
func (c *Cluster) Start(ctx context.Context) (time.Duration, error) {
	begun := time.Now()
	for _, m := range c.Members {
		if err := c.Launch(m); err != nil {
			return 0, err
		}
	}
	last := begun
	for _, m := range c.Members {
		at, err := c.AwaitReady(ctx, m)
		if err != nil {
			return 0, err
		}
		if at.After(last) {
			last = at
		}
	}
	return last.Sub(begun), nil
}

func (c *Cluster) AwaitReady(ctx context.Context, m *Member) (time.Time, error) {
	select {
	case at := <-m.log.ready:
		return at, nil
	case <-m.Ended:
		return time.Time{}, fmt.Errorf("%s %s ended before it was ready:\n%s", c.Server.Name, m.Name, m.LastWords())
	case <-time.After(readyLimit):
		return time.Time{}, fmt.Errorf("%s %s is not ready after %s:\n%s", c.Server.Name, m.Name, readyLimit, m.LastWords())
	case <-ctx.Done():
		return time.Time{}, ctx.Err()
	}
}

func (c *Cluster) Launch(m *Member) error {
	var initial []string
	for _, each := range c.Members {
		initial = append(initial, each.Name+"=http://"+each.met)
	}
	state := "new"
	if m.joins {
		state = "existing"
	}
	listen := "http://" + m.ClientAddr
	if m.SecureAddr != "" {
		listen += ",https://" + m.SecureAddr
	}
	command := exec.Command(c.Server.Path,
		"--name="+m.Name, "--data-dir="+filepath.Join(c.dir, m.Name), fmt.Sprintf("--auto-tls=%t", m.SecureAddr != ""),
		"--listen-client-urls="+listen, "--advertise-client-urls=http://"+m.ClientAddr,
		"--listen-peer-urls=http://"+m.PeerAddr, "--initial-advertise-peer-urls=http://"+m.met,
		"--initial-cluster="+strings.Join(initial, ","), "--initial-cluster-state="+state,
		"--initial-cluster-token="+filepath.Base(c.dir), fmt.Sprintf("--quota-backend-bytes=%d", 8<<30),
		"--heartbeat-interval=100", "--election-timeout=1000")
	command.Args = append(command.Args, c.Server.Flags...)
	command.Args = append(command.Args, c.featureFlags(m)...)
	m.log = &logWatch{ready: make(chan time.Time, 1)}
	command.Stdout, command.Stderr = m.log, m.log
	// A member does not outlive the run, however that ends, nor does it see the terminal's interrupt.
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	start := command.Start
	if m.Disk != nil {
		start = func() error { return m.Disk.Start(command) }
	}
	if err := start(); err != nil {
		return err
	}
	m.process = command.Process
	ended := make(chan struct{})
	m.Ended = ended
	go func() {
		_ = command.Wait() // it ends by a signal
		close(ended)
	}()
	return nil
}

// Stop ends all members in good order.
func (c *Cluster) Stop() {
	for _, m := range c.Members {
		m.Signal(syscall.SIGTERM)
	}
	for _, m := range c.Members {
		if m.process == nil {
			continue
		}
		select {
		case <-m.Ended:
		case <-time.After(stopLimit):
			m.Signal(syscall.SIGKILL)
			<-m.Ended
		}
	}
}

// Signal does nothing to a member that has ended: its number may be another process's by now.
func (m *Member) Signal(s syscall.Signal) {
	if m.process == nil {
		return
	}
	select {
	case <-m.Ended:
	default:
		_ = m.process.Signal(s)
	}
}

// Remove ends the members and takes their data away.
func (c *Cluster) Remove() error {
	if c.Control != nil {
		_ = c.Control.Close() // says only that it was cut off
	}
	c.Stop()
	if c.Links != nil {
		c.Links.Close()
	}
	err := os.RemoveAll(c.dir)
	for _, group := range c.groups {
		err = errors.Join(err, os.Remove(group))
	}
	return err
}

// Leader asks until a member names one that is among the cluster's.
func (c *Cluster) Leader(ctx context.Context) (*Member, error) {
	for ctx.Err() == nil {
		ids := map[uint64]*Member{}
		named := uint64(0)
		for _, m := range c.Members {
			if status, err := c.Control.Status(ctx, m.ClientAddr); err == nil {
				m.ID, named = status.Header.MemberId, status.Leader
				ids[m.ID] = m
			}
		}
		if m := ids[named]; m != nil && len(ids) == len(c.Members) {
			return m, nil
		}
		time.Sleep(50 * time.Millisecond)
	}
	return nil, ctx.Err()
}

func (c *Cluster) cpuTime() (sum time.Duration) {
	for _, m := range c.Members {
		sum += cpuTime(m.process.Pid)
	}
	return sum
}

// Resident is the resident set of the largest member in MiB, by a line of its status.
func (c *Cluster) Resident(line string) float64 {
	largest := int64(0)
	for _, m := range c.Members {
		largest = max(largest, residentKiB(m.process.Pid, line))
	}
	return float64(largest) / 1024
}

func (c *Cluster) ForgetPeaks() {
	for _, m := range c.Members {
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

func Connect(endpoints ...string) (*clientv3.Client, error) {
	return clientv3.New(clientv3.Config{Endpoints: endpoints, DialTimeout: 5 * time.Second})
}

// Pause waits, or until ctx ends.
func Pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// ConnectAll opens connections that know all members.
func (c *Cluster) ConnectAll(n int) (clients []*clientv3.Client, err error) {
	for range n {
		client, err := c.Connect(c.Control.Endpoints()...)
		if err != nil {
			return clients, err
		}
		clients = append(clients, client)
	}
	return clients, nil
}

// The users of a cluster with users: the administrator, and the clients, whose role may read and write every key.
const (
	rootUser   = "root"
	clientUser = "client"
	password   = "password"
)

// enableUsers makes the users, enables authentication, and lets Control log in as root.
func (c *Cluster) enableUsers(ctx context.Context, endpoints []string) error {
	everything := clientv3.PermissionType(clientv3.PermReadWrite)
	steps := []func() error{
		func() error { _, err := c.Control.UserAdd(ctx, rootUser, password); return err },
		func() error { _, err := c.Control.UserGrantRole(ctx, rootUser, rootUser); return err },
		func() error { _, err := c.Control.UserAdd(ctx, clientUser, password); return err },
		func() error { _, err := c.Control.RoleAdd(ctx, clientUser); return err },
		func() error {
			_, err := c.Control.RoleGrantPermission(ctx, clientUser, "\x00", "\x00", everything)
			return err
		},
		func() error { _, err := c.Control.UserGrantRole(ctx, clientUser, clientUser); return err },
		func() error { _, err := c.Control.AuthEnable(ctx); return err },
	}
	for _, step := range steps {
		if err := step(); err != nil {
			return err
		}
	}
	client, err := login(rootUser, endpoints)
	if err == nil {
		err = c.Control.Close()
		c.Control = client
	}
	return err
}

// Connect opens a connection as the clients of this cluster do: with users, one that has logged in.
func (c *Cluster) Connect(endpoints ...string) (*clientv3.Client, error) {
	if !c.Server.Users {
		return Connect(endpoints...)
	}
	return login(clientUser, endpoints)
}

func login(user string, endpoints []string) (*clientv3.Client, error) {
	return clientv3.New(clientv3.Config{Endpoints: endpoints, DialTimeout: 5 * time.Second, Username: user, Password: password})
}
