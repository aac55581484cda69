package admission_test

import (
	"net"
	"testing"

	"github.com/quorate/quorate/internal/admission"
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
		{"@", "@"},
	} {
		if got := admission.Host(text(row.from)); got != row.want {
			t.Errorf("%s: got %s, want %s", row.from, got, row.want)
		}
	}
	for _, name := range []string{"", "@", "/run/a.sock", "10.1.2.3:4000"} { // as clients of a unix socket like
		if got := admission.Host(&net.UnixAddr{Net: "unix", Name: name}); got != "unix" {
			t.Errorf("the unix socket %q: got %s", name, got)
		}
	}
}

// Ensure that the oldest of the host that has most has to go, so that a flood from one host costs that host.
func TestUnidentified_Add_oldestOfTheLargestHost(t *testing.T) {
	l := admission.NewUnidentified(8)
	friend := &caller{from: "10.0.0.1:1"}
	if _, evicted := l.Add(friend); evicted != nil {
		t.Fatal("evicted from an empty set")
	}
	var flood []*caller
	for range 20 {
		one := &caller{from: "10.0.0.2:1"}
		flood = append(flood, one)
		_, evicted := l.Add(one)
		if at := len(flood) - 8; at >= 0 && evicted != flood[at] {
			t.Fatalf("connection %d evicted %v, want the oldest of its own host", len(flood), evicted)
		}
	}
	if open, evicted := l.Counts(); open != 8 || evicted != 13 {
		t.Errorf("got %d open, %d evicted; want 8, 13", open, evicted)
	}
}

// Ensure that hosts with as many connections each lose the oldest of all.
func TestUnidentified_Add_oldestOfAll(t *testing.T) {
	l := admission.NewUnidentified(2)
	first, second := &caller{from: "10.0.0.1:1"}, &caller{from: "10.0.0.2:1"}
	l.Add(first)
	l.Add(second)
	if _, evicted := l.Add(&caller{from: "10.0.0.3:1"}); evicted != first {
		t.Errorf("got %v, want the first", evicted)
	}
}

// Ensure that who is pinned is not evicted, that half of all can be pinned and no more, and that who is pinned no more
// waits again.
func TestUnidentified_Pin(t *testing.T) {
	l := admission.NewUnidentified(4)
	var slots []*admission.Slot
	var conns []*caller
	enter := func() net.Conn {
		conns = append(conns, &caller{from: "10.0.0.1:1"})
		slot, evicted := l.Add(conns[len(conns)-1])
		slots = append(slots, slot)
		return evicted
	}
	for range 4 {
		enter()
	}
	for _, slot := range slots[:3] {
		slot.Pin()
	}
	slots[0].Pin()
	for i, want := range []*caller{conns[2], conns[3]} {
		if evicted := enter(); evicted != want {
			t.Fatalf("%d: evicted %v, want %v", i, evicted, want)
		}
	}
	slots[0].Unpin()
	slots[2].Unpin() // was evicted
	if evicted := enter(); evicted != conns[4] {
		t.Errorf("evicted %v, want one that waits", evicted)
	}
	slots[0].Unpin()
	slots[1].Remove()
	slots[1].Remove()
	if open, _ := l.Counts(); open != 3 {
		t.Errorf("%d are open, want 3", open)
	}
	enter()
	if evicted := enter(); evicted != conns[5] {
		t.Errorf("evicted %v, want the oldest that waits", evicted)
	}
	if evicted := enter(); evicted != conns[6] {
		t.Errorf("evicted %v, want the oldest that waits", evicted)
	}
	if evicted := enter(); evicted != conns[0] {
		t.Errorf("evicted %v, want the one that is pinned no more", evicted)
	}
}
