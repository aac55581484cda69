package transport_test

import (
	"context"
	"net"
	"testing"
	"time"

	"github.com/quorate/quorate/internal/base/testnet"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/identity"
	"github.com/quorate/quorate/internal/transport"
)

// Ensure that what a call brings counts with what strangers hold until it is answered, while the member in whose name it comes is
// asked too, and no longer than the caller waits.
func TestTransport_Call_unprovedCounts(t *testing.T) {
	const body = 1 << 20
	listener := &guarded{}
	a := start(t, 1, func(o *transport.Options) {
		listener.Listener = o.Listeners[0]
		o.Listeners, o.Times.DeadAfter = []net.Listener{listener}, time.Hour
	})
	silent, err := net.Listen("tcp", testnet.Address(t))
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	a.SetPeers([]consensus.Member{{ID: 2, PeerURLs: []string{"http://" + silent.Addr().String()}}})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	said := transport.Options{Self: identity.Claim{Cluster: cluster, Member: 2}}
	ended := make(chan error, 3)
	for range 3 {
		go func() {
			_, err := transport.CallAsForTesting(ctx, said, a.url, "echo", make([]byte, body))
			ended <- err
		}()
	}
	await := func(what string, held func(int64) bool) {
		t.Helper()
		for late := time.Now().Add(patience); !held(listener.held.Load()); <-time.After(time.Millisecond) {
			if time.Now().After(late) {
				t.Fatalf("%s: %d bytes are counted", what, listener.held.Load())
			}
		}
	}
	await("all have come", func(held int64) bool { return held >= 3*body })
	await("all have been read", func(int64) bool { return a.Stats().Unmet == 0 })
	for end := time.Now().Add(time.Second); time.Now().Before(end); <-time.After(time.Millisecond) {
		if held := listener.held.Load(); held < 3*body {
			t.Fatalf("%d bytes are counted while three calls of %d wait", held, body)
		}
	}
	cancel()
	for range 3 {
		if err := receive(t, ended, "the end of a call"); err == nil {
			t.Error("a call in the name of a silent member was answered")
		}
	}
	await("all have gone", func(held int64) bool { return held < body })
}
