package admission_test

import (
	"net"
	"slices"
	"testing"

	"github.com/quorate/quorate/internal/limits/admission"
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
	if _, evicted := l.Add(friend, 1); evicted != nil {
		t.Fatal("evicted from an empty set")
	}
	var flood []*caller
	for range 20 {
		one := &caller{from: "10.0.0.2:1"}
		flood = append(flood, one)
		_, evicted := l.Add(one, 1)
		if at := len(flood) - 8; at >= 0 && (len(evicted) != 1 || evicted[0] != flood[at]) {
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
	l.Add(first, 1)
	l.Add(second, 1)
	if _, evicted := l.Add(&caller{from: "10.0.0.3:1"}, 1); len(evicted) != 1 || evicted[0] != first {
		t.Errorf("got %v, want the first", evicted)
	}
}

// Ensure that a pinned connection is not evicted, that half of all can be pinned and no more, and that one that is pinned no
// more waits again.
func TestUnidentified_Pin(t *testing.T) {
	l := admission.NewUnidentified(4)
	var slots []*admission.Slot
	var conns []*caller
	enter := func() net.Conn {
		conns = append(conns, &caller{from: "10.0.0.1:1"})
		slot, evicted := l.Add(conns[len(conns)-1], 1)
		slots = append(slots, slot)
		if len(evicted) != 1 {
			return nil
		}
		return evicted[0]
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

// Ensure that what a connection holds counts: of the host that holds most goes the one that holds half of it, else the oldest; and
// that what a member's connection holds counts only while it is none.
func TestUnidentified_Hold(t *testing.T) {
	const base, most = 10, 100
	u := admission.NewUnidentified(most)
	conn := func(host string) (*caller, *admission.Slot) {
		c := &caller{from: host + ":1"}
		slot, evicted := u.Add(c, base)
		if evicted != nil {
			t.Fatalf("%v had to go for one more", evicted)
		}
		return c, slot
	}
	want := func(what string, evicted []net.Conn, held int64, conns ...net.Conn) {
		t.Helper()
		if !slices.Equal(evicted, conns) || u.Held() != held {
			t.Fatalf("%s: %v had to go, and %d are held; want %v and %d", what, evicted, u.Held(), conns, held)
		}
	}
	_, friend := conn("10.0.0.1")
	thin, thinSlot := conn("10.0.0.2")
	fat, fatSlot := conn("10.0.0.2")
	memberConn, member := conn("10.0.0.2")
	want("a member is pinned", nil, 40)
	member.Pin()
	want("it may hold what it likes", member.Hold(1000), 40)
	want("there is room", fatSlot.Hold(40), 80)
	want("more than there is room for, by a host that has less", friend.Hold(25), 55, fat)
	want("it has gone", fatSlot.Hold(-40), 55)
	want("less", friend.Hold(-25), 30)
	want("the last of its host", thinSlot.Hold(80), 20, thin)
	want("it is a member's no more", member.Unpin(), 10, memberConn)
}
