package lobby_test

import (
	"net"
	"testing"

	"github.com/quorate/quorate/internal/lobby"
)

// caller is a connection from somewhere.
type caller struct {
	net.Conn
	from string
}

func (c *caller) RemoteAddr() net.Addr { return text(c.from) }

type text string

func (text) Network() string  { return "tcp" }
func (t text) String() string { return string(t) }

func TestHost(t *testing.T) {
	for _, row := range []struct{ from, want string }{
		{"10.1.2.3:4000", "10.1.2.3"},
		{"[::ffff:10.1.2.3]:4000", "10.1.2.3"},
		{"[2001:db8:1:2:3:4:5:6]:4000", "2001:db8:1:2::/64"},
		{"[2001:db8:1:2::9]:4001", "2001:db8:1:2::/64"},
		{"[2001:db8:1:3::9]:4001", "2001:db8:1:3::/64"},
		{"[fe80::1%eth0]:4000", "fe80::/64"},
		{"@", "@"}, {"/run/a.sock", "/run/a.sock"},
	} {
		if got := lobby.Host(text(row.from)); got != row.want {
			t.Errorf("%s: got %s, want %s", row.from, got, row.want)
		}
	}
}

// Ensure that the oldest of the host that has most has to go, so that a flood from one host costs that host.
func TestLobby_Enter_oldestOfTheLargestHost(t *testing.T) {
	l := lobby.New(8)
	friend := &caller{from: "10.0.0.1:1"}
	if _, pushed := l.Enter(friend); pushed != nil {
		t.Fatal("pushed out of an empty lobby")
	}
	var flood []*caller
	for range 20 {
		one := &caller{from: "10.0.0.2:1"}
		flood = append(flood, one)
		_, pushed := l.Enter(one)
		if at := len(flood) - 8; at >= 0 && pushed != flood[at] {
			t.Fatalf("connection %d pushed out %v, want the oldest of its own host", len(flood), pushed)
		}
	}
	if open, pushed := l.Counts(); open != 8 || pushed != 13 {
		t.Errorf("got %d open, %d pushed out; want 8, 13", open, pushed)
	}
}

// Ensure that hosts with as many connections each lose the oldest of all.
func TestLobby_Enter_oldestOfAll(t *testing.T) {
	l := lobby.New(2)
	first, second := &caller{from: "10.0.0.1:1"}, &caller{from: "10.0.0.2:1"}
	l.Enter(first)
	l.Enter(second)
	if _, pushed := l.Enter(&caller{from: "10.0.0.3:1"}); pushed != first {
		t.Errorf("got %v, want the first", pushed)
	}
}

// Ensure that who is kept is not pushed out, that half of the lobby can be kept and no more, and that who is kept no more
// waits again.
func TestLobby_Keep(t *testing.T) {
	l := lobby.New(4)
	var seats []*lobby.Seat
	var conns []*caller
	enter := func() net.Conn {
		conns = append(conns, &caller{from: "10.0.0.1:1"})
		seat, pushed := l.Enter(conns[len(conns)-1])
		seats = append(seats, seat)
		return pushed
	}
	for range 4 {
		enter()
	}
	for _, seat := range seats[:3] {
		seat.Keep()
	}
	seats[0].Keep()
	for i, want := range []*caller{conns[2], conns[3]} {
		if pushed := enter(); pushed != want {
			t.Fatalf("%d: pushed out %v, want %v", i, pushed, want)
		}
	}
	seats[0].Unkeep()
	seats[2].Unkeep() // was pushed out
	if pushed := enter(); pushed != conns[4] {
		t.Errorf("pushed out %v, want one that waits", pushed)
	}
	seats[0].Unkeep()
	seats[1].Leave()
	seats[1].Leave()
	if open, _ := l.Counts(); open != 3 {
		t.Errorf("%d are open, want 3", open)
	}
	enter()
	if pushed := enter(); pushed != conns[5] {
		t.Errorf("pushed out %v, want the oldest that waits", pushed)
	}
	if pushed := enter(); pushed != conns[6] {
		t.Errorf("pushed out %v, want the oldest that waits", pushed)
	}
	if pushed := enter(); pushed != conns[0] {
		t.Errorf("pushed out %v, want the one that is kept no more", pushed)
	}
}
