package transport_test

import (
	"context"
	"crypto/rand"
	"io"
	"log/slog"
	"net"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/quorate/quorate/internal/base/testnet"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/identity"
	"github.com/quorate/quorate/internal/transport"
)

func TestMain(m *testing.M) {
	if os.Getenv(childVariable) != "" {
		runChild()
		return
	}
	goleak.VerifyTestMain(m)
}

const cluster consensus.ClusterID = 0xc1

// mostAnswer bounds the answers of the members of a test.
const mostAnswer = 8 << 20

// patience bounds every wait; nothing is expected to come near it.
const patience = 30 * time.Second

// member is a transport with a handler that passes everything to channels.
type member struct {
	*transport.Transport
	t        *testing.T
	id       consensus.MemberID
	url      string
	messages chan consensus.Message
	lost     chan consensus.MemberID
	logs     *logLines

	// Set before the member is acquainted with others.
	receive  func([]consensus.Message)
	snapshot func(consensus.MemberID, consensus.SnapshotMeta, io.Reader) error
	call     func(context.Context, string, []byte) ([]byte, error)
}

// ear is the handler of a member.
type ear struct{ m *member }

func (e ear) Receive(messages []consensus.Message) {
	if e.m.receive != nil {
		e.m.receive(messages)
		return
	}
	for _, message := range messages {
		e.m.messages <- message
	}
}

func (e ear) PeerLost(id consensus.MemberID) { e.m.lost <- id }

func (e ear) ReceiveSnapshot(from consensus.MemberID, meta consensus.SnapshotMeta, r io.Reader) error {
	return e.m.snapshot(from, meta, r)
}

func (e ear) Call(ctx context.Context, method string, body []byte) ([]byte, error) {
	return e.m.call(ctx, method, body)
}

// start opens a transport on loopback. Each change may adapt the options.
func start(t *testing.T, id consensus.MemberID, changes ...func(*transport.Options)) *member {
	t.Helper()
	l, err := net.Listen("tcp", testnet.Address(t))
	if err != nil {
		t.Fatal(err)
	}
	return startOn(t, id, l, changes...)
}

func startOn(t *testing.T, id consensus.MemberID, l net.Listener, changes ...func(*transport.Options)) *member {
	t.Helper()
	m := &member{t: t, id: id, url: "http://" + l.Addr().String(), logs: &logLines{},
		messages: make(chan consensus.Message, 1<<16), lost: make(chan consensus.MemberID, 1<<10)}
	o := transport.Options{Self: identity.Claim{Member: id, Cluster: cluster}, Handler: ear{m}, Listeners: []net.Listener{l},
		Logger: slog.New(slog.NewTextHandler(m.logs, nil))}
	for _, change := range changes {
		change(&o)
	}
	var err error
	if m.Transport, err = transport.New(o); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = m.Close()
		if t.Failed() {
			t.Logf("member %s at %s said:\n%s", id, m.url, m.logs)
		}
	})
	return m
}

// acquaint makes each member a peer of all others and waits until every stream is up.
func acquaint(members ...*member) {
	for _, m := range members {
		var peers []consensus.Member
		for _, other := range members {
			peers = append(peers, consensus.Member{ID: other.id, PeerURLs: []string{other.url}})
		}
		m.SetPeers(peers)
	}
	for _, m := range members {
		for _, other := range members {
			if m != other {
				m.waitFor(other.id)
			}
		}
	}
}

// waitFor waits until both streams to a peer are up.
func (m *member) waitFor(id consensus.MemberID) {
	m.t.Helper()
	late := time.After(patience)
	for {
		_, up := m.ConnectedSince(id)
		_, measured := m.RTT(id)
		if up && measured {
			return
		}
		select {
		case <-late:
			m.t.Fatalf("%s is not connected with %s:\n%s", m.id, id, m.logs)
		default:
			osYield()
		}
	}
}

func (m *member) next() consensus.Message {
	m.t.Helper()
	return receive(m.t, m.messages, "a message")
}

func receive[T any](t *testing.T, c <-chan T, what string) T {
	t.Helper()
	select {
	case v := <-c:
		return v
	case <-time.After(patience):
		t.Fatalf("waited in vain for %s", what)
		panic("unreachable")
	}
}

func none[T any](t *testing.T, c <-chan T, what string) {
	t.Helper()
	select {
	case v := <-c:
		t.Fatalf("got %s %v, want none", what, v)
	default:
	}
}

func appendMessage(from, to consensus.MemberID, index consensus.Index, payloads ...int) consensus.Message {
	m := consensus.Message{Kind: consensus.MsgAppend, From: from, To: to, Term: 3,
		Match: consensus.Position{Index: index, Term: 3}, Commit: index}
	for i, size := range payloads {
		payload := make([]byte, size)
		_, _ = rand.Read(payload)
		m.Entries = append(m.Entries, consensus.Entry{Index: index + 1 + consensus.Index(i), Term: 3,
			Kind: consensus.EntryCommand, Payload: payload})
	}
	return m
}

func heartbeat(from, to consensus.MemberID, round uint64) consensus.Message {
	return consensus.Message{Kind: consensus.MsgHeartbeat, From: from, To: to, Term: 3, Round: round}
}

// logLines keeps what was logged.
type logLines struct {
	mu   sync.Mutex
	text strings.Builder
	wake chan struct{}
}

func (l *logLines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.wake != nil {
		close(l.wake)
		l.wake = nil
	}
	return l.text.Write(p)
}

func (l *logLines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// await waits until a line holds all parts, and returns how many do.
func (l *logLines) await(t *testing.T, parts ...string) int {
	t.Helper()
	late := time.After(patience)
	for {
		l.mu.Lock()
		if l.wake == nil {
			l.wake = make(chan struct{})
		}
		wake, text := l.wake, l.text.String()
		l.mu.Unlock()
		count := 0
		for line := range strings.Lines(text) {
			all := true
			for _, part := range parts {
				all = all && strings.Contains(line, part)
			}
			if all {
				count++
			}
		}
		if count > 0 {
			return count
		}
		select {
		case <-wake:
		case <-late:
			t.Fatalf("no log line with %q in:\n%s", parts, text)
		}
	}
}
