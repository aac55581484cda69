package process_test

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/quorate/quorate/internal/base/testnet"
)

// node is one member's process and the proxy in front of its peer port.
type node struct {
	name    string
	client  string // URL
	peer    string // address it listens on
	proxy   *proxy // what the others dial
	dir     string
	log     string
	flags   []string // more of them, for this member alone
	program string   // empty: that of the cluster
	// prepare, if set, changes the command before it is started.
	prepare func(cmd *exec.Cmd)
	// begin, if set, starts the command in the place of its own Start.
	begin  func(cmd *exec.Cmd) error
	cmd    *exec.Cmd
	exited chan struct{}
}

// cluster is three processes on loopback.
type cluster struct {
	t      *testing.T
	binary string
	nodes  []*node
	flags  []string // more of them, for every member
	certs  string   // where dressInTLS has put the certificates of members
}

// inferring makes members count who holds what they propose: on one machine they are too near for it by themselves.
const inferring = "--fast-path=always"

// binaryDir holds the binary that all tests run; it is linked once.
var binaryDir string

// atOnce is how many tests run beside each other: they wait for processes most of the time.
const atOnce = 4

func TestMain(m *testing.M) {
	flag.Parse()
	if p := flag.Lookup("test.parallel"); p.Value.String() == p.DefValue && runtime.GOMAXPROCS(0) < atOnce {
		_ = p.Value.Set(strconv.Itoa(atOnce))
	}
	dir, err := os.MkdirTemp("", "process")
	if err != nil {
		panic(err)
	}
	binaryDir = dir
	status := m.Run()
	_ = os.RemoveAll(dir)
	os.Exit(status)
}

var builtBinary = sync.OnceValues(func() (string, error) {
	binary := filepath.Join(binaryDir, "quorate")
	build := exec.Command("go", "build", "-o", binary, "github.com/quorate/quorate/cmd/quorate")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build: %w\n%s", err, out)
	}
	return binary, nil
})

func buildBinary(t *testing.T) string {
	t.Helper()
	binary, err := builtBinary()
	if err != nil {
		t.Fatal(err)
	}
	return binary
}

func startCluster(t *testing.T, size int, flags ...string) *cluster {
	t.Helper()
	c := newCluster(t, size, flags...)
	for _, n := range c.nodes {
		c.start(n)
	}
	for _, n := range c.nodes {
		c.waitReady(n)
		c.waitPublished(n)
	}
	return c
}

// newCluster gives members their places and starts none.
func newCluster(t *testing.T, size int, flags ...string) *cluster {
	t.Helper()
	c := &cluster{t: t, binary: buildBinary(t), flags: flags}
	dir := t.TempDir()
	for i := range size {
		name := fmt.Sprintf("m%d", i+1)
		n := &node{
			name: name, client: "http://" + testnet.Address(t), peer: testnet.Address(t),
			dir: filepath.Join(dir, name), log: filepath.Join(dir, name+".log"),
		}
		n.proxy = newProxy(t, n.peer)
		c.nodes = append(c.nodes, n)
	}
	t.Cleanup(func() {
		for _, n := range c.nodes {
			if n.cmd != nil {
				n.kill()
			}
			n.proxy.close()
			if t.Failed() {
				t.Logf("--- end of %s's log\n%s", n.name, tail(n.log, 3000))
			}
		}
	})
	return c
}

func tail(path string, n int) string {
	content, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	return tailOf(string(content), n)
}

func tailOf(text string, n int) string { return text[max(0, len(text)-n):] }

func (c *cluster) initialCluster() string {
	var parts []string
	for _, n := range c.nodes {
		parts = append(parts, n.name+"=http://"+n.proxy.address())
	}
	return strings.Join(parts, ",")
}

func (c *cluster) start(n *node) {
	c.t.Helper()
	c.run(n, append([]string{"--name=" + n.name, "--data-dir=" + n.dir,
		"--listen-client-urls=" + n.client, "--advertise-client-urls=" + n.client,
		"--listen-peer-urls=http://" + n.peer, "--initial-advertise-peer-urls=http://" + n.proxy.address(),
		"--initial-cluster=" + c.initialCluster(), "--heartbeat-interval=50", "--election-timeout=500", inferring},
		slices.Concat(c.flags, n.flags)...)...)
}

// run starts n's process; its output is added to n's log.
func (c *cluster) run(n *node, args ...string) {
	c.t.Helper()
	log, err := os.OpenFile(n.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		c.t.Fatal(err)
	}
	defer log.Close()
	n.cmd = exec.Command(cmp.Or(n.program, c.binary), args...)
	n.cmd.Stdout, n.cmd.Stderr = log, log
	if n.prepare != nil {
		n.prepare(n.cmd)
	}
	launch := n.cmd.Start
	if n.begin != nil {
		launch = func() error { return n.begin(n.cmd) }
	}
	if err := launch(); err != nil {
		c.t.Fatal(err)
	}
	exited := make(chan struct{})
	n.exited = exited
	cmd := n.cmd
	go func() {
		_ = cmd.Wait()
		close(exited)
	}()
}

func (n *node) kill() {
	_ = n.cmd.Process.Signal(syscall.SIGKILL)
	<-n.exited
}

// waitReady waits until n answers a linearizable read.
func (c *cluster) waitReady(n *node) {
	c.t.Helper()
	deadline := time.Now().Add(30 * time.Second)
	client := c.connect(n)
	defer client.Close()
	for time.Now().Before(deadline) {
		select {
		case <-n.exited:
			c.t.Fatalf("%s exited while it should start:\n%s", n.name, tail(n.log, 2000))
		default:
		}
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
		_, err := client.Get(ctx, "ready?")
		cancel()
		if err == nil {
			return
		}
	}
	c.t.Fatalf("%s is not ready after 30s:\n%s", n.name, tail(n.log, 2000))
}

// waitPublished waits until n knows where all members serve clients, which they tell once they serve.
func (c *cluster) waitPublished(n *node) {
	c.t.Helper()
	client := c.connect(n)
	defer client.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	for {
		list, err := client.MemberList(ctx)
		if err != nil {
			c.t.Fatal(err)
		}
		if !slices.ContainsFunc(list.Members, func(m *pb.Member) bool { return len(m.ClientURLs) == 0 }) {
			return
		}
	}
}

func (c *cluster) connect(nodes ...*node) *clientv3.Client {
	c.t.Helper()
	var endpoints []string
	for _, n := range nodes {
		endpoints = append(endpoints, n.client)
	}
	client, err := clientv3.New(clientv3.Config{Endpoints: endpoints, DialTimeout: time.Second})
	if err != nil {
		c.t.Fatal(err)
	}
	return client
}

// proxy passes bytes to a peer port until it is cut.
type proxy struct {
	target   string
	listener net.Listener
	late     atomic.Int64 // nanoseconds by which a new connection is delayed
	rate     atomic.Int64 // bytes a second that each connection carries to the target; zero: no limit
	carried  atomic.Int64 // bytes to the target
	mu       sync.Mutex
	isCut    bool
	conns    []net.Conn
	wg       sync.WaitGroup
}

func newProxy(t *testing.T, target string) *proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{target: target, listener: l}
	p.wg.Go(p.accept)
	return p
}

func (p *proxy) address() string { return p.listener.Addr().String() }

func (p *proxy) accept() {
	for {
		in, err := p.listener.Accept()
		if err != nil {
			return
		}
		<-time.After(time.Duration(p.late.Load()))
		out, err := net.Dial("tcp", p.target)
		if err != nil || !p.keep(in, out) {
			_ = in.Close()
			if out != nil {
				_ = out.Close()
			}
			continue
		}
		p.wg.Go(func() { pump(narrowReader{in, p}, in, out) })
		p.wg.Go(func() { pump(out, out, in) })
	}
}

func pump(bytes io.Reader, from, to net.Conn) {
	_, _ = io.Copy(to, bytes)
	_ = to.Close()
	_ = from.Close()
}

// narrowReader reads what goes to a proxy's target, at its rate.
type narrowReader struct {
	net.Conn
	p *proxy
}

func (r narrowReader) Read(b []byte) (int, error) {
	n, err := r.Conn.Read(b[:min(len(b), 16<<10)])
	r.p.carried.Add(int64(n))
	if rate := r.p.rate.Load(); rate > 0 {
		<-time.After(time.Duration(n) * time.Second / time.Duration(rate))
	}
	return n, err
}

func (p *proxy) keep(conns ...net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.isCut {
		return false
	}
	p.conns = append(p.conns, conns...)
	return true
}

// cut breaks every connection and refuses new ones, until heal.
func (p *proxy) cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.isCut = true
	for _, conn := range p.conns {
		_ = conn.Close()
	}
	p.conns = nil
}

func (p *proxy) heal() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.isCut = false
}

func (p *proxy) close() {
	_ = p.listener.Close()
	p.cut()
	p.wg.Wait()
}

// isolate cuts n off in both directions: no other member reaches it, and it reaches only those to which it connected itself.
// Its own outgoing connections go through the others' proxies, which see only new ones refused, so it is paused as well.
func (n *node) isolate(t *testing.T) {
	t.Helper()
	n.proxy.cut()
	if err := n.cmd.Process.Signal(syscall.SIGSTOP); err != nil && !errors.Is(err, os.ErrProcessDone) {
		t.Fatal(err)
	}
}

func (n *node) rejoin(t *testing.T) {
	t.Helper()
	n.proxy.heal()
	if err := n.cmd.Process.Signal(syscall.SIGCONT); err != nil && !errors.Is(err, os.ErrProcessDone) {
		t.Fatal(err)
	}
}
