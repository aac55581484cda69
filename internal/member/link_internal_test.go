package member

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"testing"
	"time"

	"github.com/quorate/quorate/internal/base/env"
	"github.com/quorate/quorate/internal/base/testnet"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/raft"
	"github.com/quorate/quorate/internal/identity"
	"github.com/quorate/quorate/internal/member/datadir"
	"github.com/quorate/quorate/internal/member/datadir/datatest"
	"github.com/quorate/quorate/internal/membership/autopilot"
	"github.com/quorate/quorate/internal/storage/wal"
	"github.com/quorate/quorate/internal/transport"
)

// earlyMember is one of two members, with a transport that serves before Start, and a process that claims to be the other
// member.
func earlyMember(t *testing.T) (m *Member, serving, caller *transport.Transport, url string) {
	t.Helper()
	first := consensus.Config{Voters: []consensus.MemberID{1}, Learners: []consensus.MemberID{2}, Members: []consensus.Member{
		{ID: 1, Storage: consensus.StorageID{1}}, {ID: 2, Storage: consensus.StorageID{2}},
	}}
	data := datatest.Options()
	if err := datadir.Create(data, wal.Identity{Cluster: 1, Member: 1, Storage: wal.StorageID{1}}, first); err != nil {
		t.Fatal(err)
	}
	raftOptions, logger := raft.Defaults(1), slog.New(slog.DiscardHandler)
	raftOptions.Cluster, raftOptions.Storage = 1, consensus.StorageID{1}
	m = New(Options{
		Data: datatest.Open(t, data), Raft: raftOptions, TickInterval: 10 * time.Millisecond, RequestTimeout: testTimeout,
		Clock: env.WallClock{}, Logger: logger,
	})
	l, err := net.Listen("tcp", testnet.Address(t))
	if err != nil {
		t.Fatal(err)
	}
	serving, err = transport.New(transport.Options{
		Self: identity.Claim{Cluster: 1, Member: 1, Storage: consensus.StorageID{1}}, OpenMethods: OpenMethods(),
		Handler: m.PeerHandler(), Listeners: []net.Listener{l}, Logger: logger,
	})
	if err != nil {
		t.Fatal(err)
	}
	caller, err = transport.New(transport.Options{
		Self: identity.Claim{Cluster: 1, Member: 2, Storage: consensus.StorageID{9}}, Logger: logger,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(caller.Close(), serving.Close(), m.Stop()); err != nil {
			t.Error(err)
		}
	})
	return m, serving, caller, "http://" + l.Addr().String()
}

const testTimeout = 10 * time.Second

// Ensure that a member whose transport serves before Start answers greetings before Start, and lets a process that joins wait.
func TestMember_Start_callsBefore(t *testing.T) {
	m, serving, caller, url := earlyMember(t)
	greet := func() (identity.Greeting, error) {
		peers := &peers{}
		peers.transport.set.Store(caller)
		return peers.greet(t.Context(), url)
	}
	greeting, err := greet()
	if err != nil || greeting.Claim.Member != 1 || greeting.Elsewhere != "" {
		t.Errorf("greet before Start: got %+v, %v", greeting, err)
	}
	join := func(patience time.Duration) error {
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		_, err := callURL(ctx, transport.Options{Self: identity.Claim{Cluster: 1}}, url, &methodJoin,
			autopilot.JoinRequest{PeerURLs: []string{"http://127.0.0.1:1"}})
		return err
	}
	if err := join(200 * time.Millisecond); err == nil {
		t.Error("a process joined before Start")
	}
	calls := make(chan error)
	go func() { // concurrently with Start, for the race detector
		var err error
		for range 20 {
			_, failed := greet()
			err = errors.Join(err, failed)
		}
		_ = join(200 * time.Millisecond)
		calls <- err
	}()
	if err := m.Start(serving); err != nil {
		t.Error(err)
	}
	if err := <-calls; err != nil {
		t.Errorf("greet beside Start: %v", err)
	}
}

// Ensure that no method of link needs a transport: before Start there is none.
func TestLink_beforeStart(t *testing.T) {
	var l link
	_, connected := l.ConnectedSince(2)
	_, known := l.Distance(2)
	_, found := l.Trouble(2)
	if connected || known || found || l.WantsCertificates() || l.ShowsCertificateFor(t.Context(), nil) {
		t.Error("a link without a transport says yes")
	}
	if l.Strays() != nil || l.OtherHistories() != nil || l.Met() != nil {
		t.Error("a link without a transport knows processes")
	}
	l.Send(nil)
	(&peers{}).configure(&consensus.Config{})
	l.LookForStrays(t.Context())
	_, called := l.Call(t.Context(), 2, "", nil, 0)
	_, asked := l.CallURL(t.Context(), "", "", nil, 0)
	_, sought := l.Find(t.Context(), 2, "")
	sent := l.SendSnapshot(t.Context(), 2, consensus.SnapshotMeta{}, nil)
	for _, err := range []error{called, asked, sought, sent, l.Distrust(2)} {
		if !errors.Is(err, errNoTransport) {
			t.Errorf("got %v, want %v", err, errNoTransport)
		}
	}
}
