package rpc

import (
	"context"
	"errors"
	"net"
	"testing"
	"time"

	"google.golang.org/grpc/peer"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/env"
)

// laterClock calls what is due when the test says so.
type laterClock struct {
	env.WallClock
	due []func()
}

func (c *laterClock) AfterFunc(_ time.Duration, f func()) env.Timer {
	c.due = append(c.due, f)
	return time.NewTimer(0)
}

func (c *laterClock) pass() {
	due := c.due
	c.due = nil
	for _, f := range due {
		f()
	}
}

// Ensure that the addresses of one IPv6 site count together, for all bounds of one host.
func TestConnectionOf_sites(t *testing.T) {
	from := func(ip string) context.Context {
		return peer.NewContext(context.Background(), &peer.Peer{Addr: &net.TCPAddr{IP: net.ParseIP(ip), Port: 7}})
	}
	one, same, other := from("2001:db8:1:2::1"), from("2001:db8:1:2:3:4:5:6"), from("2001:db8:1:3::1")
	for name, host := range map[string]func(context.Context) string{
		"connectionOf": func(ctx context.Context) string { return connectionOf(ctx).host }, "clientHost": clientHost,
	} {
		if host(one) != host(same) || host(one) == host(other) {
			t.Errorf("%s: got %s, %s, %s; want one host for the first two", name, host(one), host(same), host(other))
		}
	}
	if connectionOf(one).name == connectionOf(same).name {
		t.Error("two connections have one name")
	}
}

// Ensure that a client counts until its sessions would be gone, that it may come back before, and that nothing is kept
// of those that are gone.
func TestClientRegister_enter(t *testing.T) {
	clock := &laterClock{}
	var r clientRegister
	r.init(clock, nil)
	here, there := connection{"10.0.0.1", "10.0.0.1:1"}, connection{"10.0.0.1", "10.0.0.1:2"}
	var leave []func()
	for id := consensus.MemberID(1); id <= maxConnectionClients; id++ {
		one, err := r.enter(id, here)
		if err != nil {
			t.Fatal(err)
		}
		leave = append(leave, one)
	}
	if _, err := r.enter(1000, here); !errors.Is(err, errTooManyClients) {
		t.Errorf("one more on the connection: got %v", err)
	}
	other, err := r.enter(1000, there)
	if err != nil {
		t.Errorf("on another connection: got %v", err)
	}
	leave[0]()
	if _, err := r.enter(1001, here); err == nil {
		t.Error("a client that left a moment ago does not count any more")
	}
	again, err := r.enter(1, there)
	if err != nil {
		t.Fatal(err)
	}
	clock.pass()
	if n, refused := r.counts(); n != maxConnectionClients+1 || refused != 2 {
		t.Errorf("%d clients, %d refused: the one that came back is forgotten", n, refused)
	}
	for _, f := range append(leave[1:], other, again) {
		f()
	}
	clock.pass()
	if n, _ := r.counts(); n != 0 || len(r.hosts) != 0 || len(r.connections) != 0 {
		t.Errorf("%d clients, %v, %v are left", n, r.hosts, r.connections)
	}
	for range maxClientStreams {
		if _, err := r.enter(1, here); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := r.enter(1, here); !errors.Is(err, errTooManyClients) {
		t.Errorf("one more stream of a client: got %v", err)
	}
}
