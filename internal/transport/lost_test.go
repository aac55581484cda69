package transport_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/quorate/quorate/internal/base/testnet"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/identity"
	"github.com/quorate/quorate/internal/transport"
)

func osYield() { runtime.Gosched() }

func TestTransport_PeerLost_killedProcess(t *testing.T) {
	for _, row := range []struct {
		name string
		they bool
	}{
		{"our stream and theirs", true},
		{"only our stream to it", false},
	} {
		t.Run(row.name, func(t *testing.T) {
			a := start(t, 1)
			peer := consensus.Member{ID: 2, PeerURLs: []string{"http://127.0.0.1:1"}}
			target := ""
			if row.they {
				target = a.url
			}
			child, url := startChild(t, target)
			peer.PeerURLs[0] = url
			a.SetPeers([]consensus.Member{peer})
			a.waitFor(2)
			if row.they {
				a.next()
			}
			_ = child.Process.Kill()
			began := time.Now()
			if got := receive(t, a.lost, "the loss of member 2"); got != 2 {
				t.Errorf("lost %s, want 2", got)
			}
			t.Logf("noticed after %s", time.Since(began))
			_ = child.Wait()
			// Both streams and both directions broke: it is told once.
			a.Send([]consensus.Message{heartbeat(1, 2, 1)})
			a.logs.await(t, "peer unreachable", "peer=2")
			none(t, a.lost, "second loss")
		})
	}
}

// awaitReceived waits until something has arrived from the only peer.
func awaitReceived(t *testing.T, m *member) {
	t.Helper()
	for late := time.After(patience); m.Stats().Peers[0].Received.Messages == 0; osYield() {
		select {
		case <-late:
			t.Fatal("nothing has arrived")
		default:
		}
	}
}

func TestTransport_PeerLost_notOnClose(t *testing.T) {
	a, b, c := start(t, 1), start(t, 2), start(t, 3)
	acquaint(a, b, c)
	_ = a.Close()
	none(t, a.lost, "lost peer")
	for _, m := range []*member{b, c} {
		if got := receive(t, m.lost, "the loss of member 1"); got != 1 {
			t.Errorf("lost %s, want 1", got)
		}
	}
	a.Send([]consensus.Message{heartbeat(1, 2, 1)})
	if err := a.Close(); err != nil {
		t.Errorf("second close: %v", err)
	}
}

func TestTransport_reconnectsAfterRestart(t *testing.T) {
	a, b := start(t, 1), start(t, 2)
	acquaint(a, b)
	for range 3 {
		address := strings.TrimPrefix(b.url, "http://")
		_ = b.Close()
		receive(t, a.lost, "the loss of member 2")
		l, err := net.Listen("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		b = startOn(t, 2, l)
		b.SetPeers([]consensus.Member{{ID: 1, PeerURLs: []string{a.url}}})
		for round := uint64(1); ; round++ {
			a.Send([]consensus.Message{heartbeat(1, 2, round)})
			select {
			case <-b.messages:
			default:
				osYield()
				continue
			}
			break
		}
		a.waitFor(2)
		b.waitFor(1)
	}
	if got := a.Stats().Peers[0].Losses; got != 3 {
		t.Errorf("%d losses, want 3", got)
	}
}

func TestTransport_PeerLost_silentPeer(t *testing.T) {
	quick := func(o *transport.Options) { o.Times.DeadAfter = 100 * time.Millisecond }
	a, b := start(t, 1, quick), start(t, 2)
	wall := newProxy(t, b.url)
	a.SetPeers([]consensus.Member{{ID: 2, PeerURLs: []string{wall.url}}})
	a.waitFor(2)
	wall.mute.Store(true)
	if got := receive(t, a.lost, "the loss of member 2"); got != 2 {
		t.Errorf("lost %s, want 2", got)
	}
	wall.mute.Store(false)
	a.waitFor(2)
}

func TestTransport_Faults_cutOff(t *testing.T) {
	var cut atomic.Bool
	a := start(t, 1, func(o *transport.Options) {
		o.Times.DeadAfter = 100 * time.Millisecond
		o.Faults = func(id consensus.MemberID) bool { return id == 2 && cut.Load() }
	})
	b := start(t, 2)
	acquaint(a, b)
	cut.Store(true)
	a.Send([]consensus.Message{heartbeat(1, 2, 1)})
	b.Send([]consensus.Message{heartbeat(2, 1, 1)})
	receive(t, a.lost, "the loss of member 2")
	none(t, a.messages, "message through a cut")
	none(t, b.messages, "message through a cut")
	cut.Store(false)
	a.waitFor(2)
	b.waitFor(1)
	a.Send([]consensus.Message{heartbeat(1, 2, 2)})
	got := b.next()
	if got.Round == 1 { // it waited for a stream until the cut was over: late, as any message may be
		got = b.next()
	}
	if got.Round != 2 {
		t.Errorf("got round %d, want 2", got.Round)
	}
}

// proxy forwards connections to a target, and swallows everything while mute.
type proxy struct {
	url  string
	mute atomic.Bool
}

func newProxy(t *testing.T, target string) *proxy {
	t.Helper()
	l, err := net.Listen("tcp", testnet.Address(t))
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{url: "http://" + l.Addr().String()}
	var mu sync.Mutex
	var conns []net.Conn
	keep := func(c net.Conn) {
		mu.Lock()
		defer mu.Unlock()
		conns = append(conns, c)
	}
	var running sync.WaitGroup
	forward := func(dst, src net.Conn) {
		defer func() { _ = dst.Close() }()
		buffer := make([]byte, 32<<10)
		for {
			n, err := src.Read(buffer)
			if err != nil {
				return
			}
			if p.mute.Load() {
				continue
			}
			if _, err := dst.Write(buffer[:n]); err != nil {
				return
			}
		}
	}
	running.Go(func() {
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			keep(in)
			out, err := net.Dial("tcp", strings.TrimPrefix(target, "http://"))
			if err != nil {
				_ = in.Close()
				continue
			}
			keep(out)
			running.Go(func() { forward(out, in) })
			running.Go(func() { forward(in, out) })
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		mu.Lock()
		for _, c := range conns {
			_ = c.Close()
		}
		mu.Unlock()
		running.Wait()
	})
	return p
}

// childVariable makes the test binary a member of its own: its value is the URL of member 1, or "-".
const childVariable = "QUORATE_TRANSPORT_CHILD"

func startChild(t *testing.T, target string) (child *exec.Cmd, url string) {
	t.Helper()
	if target == "" {
		target = "-"
	}
	child = exec.Command(os.Args[0])
	child.Env = append(os.Environ(), childVariable+"="+target)
	child.Stderr = os.Stderr
	// The child ends with its standard input, should this process die first.
	stdin, err := child.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = stdin.Close()
		_ = child.Process.Kill()
		_ = child.Wait()
	})
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return child, strings.TrimSpace(line)
}

// quiet is a handler that does nothing.
type quiet struct{}

func (quiet) Receive([]consensus.Message) {}

func (quiet) PeerLost(consensus.MemberID) {}

func (quiet) ReceiveSnapshot(consensus.MemberID, consensus.SnapshotMeta, io.Reader) error { return nil }

func (quiet) Call(context.Context, string, []byte) ([]byte, error) { return nil, nil }

func runChild() {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	tr, err := transport.New(transport.Options{Self: identity.Claim{Member: 2, Cluster: cluster}, Handler: quiet{},
		Listeners: []net.Listener{l}})
	if err != nil {
		panic(err)
	}
	if target := os.Getenv(childVariable); target != "-" {
		tr.SetPeers([]consensus.Member{{ID: 1, PeerURLs: []string{target}}})
		tr.Send([]consensus.Message{heartbeat(2, 1, 1)})
	}
	fmt.Println("http://" + l.Addr().String())
	_, _ = io.Copy(io.Discard, os.Stdin)
}
