package admission_test

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"sync"
	"testing"

	"github.com/quorate/quorate/internal/limits/admission"
)

// Ensure that a host has as much as is free for others, that the next one finds room, and that all comes back.
func TestLedger_share(t *testing.T) {
	const total = 1 << 20
	l := admission.NewLedger(total)
	fill := func(host string) (*admission.Tab, int64) {
		tab := l.Open(host)
		for tab.Take(1 << 10) {
		}
		return tab, tab.Held()
	}
	first, a := fill("a")
	second, b := fill("b")
	third, c := fill("c")
	for i, part := range []struct{ got, least, most int64 }{
		{a, total/2 - 1<<10, total / 2}, {b, total/4 - 1<<10, total / 4}, {c, 47 << 10, 48 << 10},
	} {
		if part.got < part.least || part.got > part.most {
			t.Errorf("host %d has %d, want %d to %d", i, part.got, part.least, part.most)
		}
	}
	if s := l.Stats(); s.Bytes != a+b+c || s.MostHostBytes != a || s.Refused != 3 || !first.Tight() {
		t.Errorf("got %+v, tight %t", s, first.Tight())
	}
	if other := l.Open("a"); other.Take(1) {
		t.Error("another tab of a host has what its first one may not")
	} else {
		other.Close()
	}
	for _, tab := range []*admission.Tab{first, second, third} {
		tab.Close()
	}
	if s := l.Stats(); s.Bytes != 0 || s.MostHostBytes != 0 || first.Tight() {
		t.Errorf("afterwards: got %+v, tight %t", s, first.Tight())
	}
}

// Ensure that a tab that takes and gives all the time keeps what it needs, and gives it back when told to, or when room is scarce.
func TestTab_Give_spare(t *testing.T) {
	l := admission.NewLedger(1 << 20)
	tab := l.Open("a")
	for range 100 {
		if !tab.Take(10 << 10) {
			t.Fatal("there is room")
		}
		tab.Give(10 << 10)
	}
	if got := l.Stats().Bytes; got != 10<<10 {
		t.Errorf("a tab that was used keeps %d bytes, want as many as it used", got)
	}
	tab.Settle()
	if got := l.Stats().Bytes; got != 0 {
		t.Errorf("it keeps %d bytes when told to give all back", got)
	}
	other := l.Open("b")
	other.Force(600 << 10)
	if tab.Take(1<<20) || !tab.Tight() {
		t.Error("there is no room for that")
	}
	if !tab.Take(1<<10) || tab.Held() != 1<<10 {
		t.Error("there is room for little")
	}
	if tab.Give(1 << 10); l.Stats().Bytes != 600<<10 {
		t.Errorf("a tab keeps %d bytes while room is scarce", l.Stats().Bytes-600<<10)
	}
}

// Ensure that a tab that lacks room gets what others keep and do not need: of its host, and of other hosts.
func TestTab_Take_spareOfOthers(t *testing.T) {
	const total, spare, idle = 1 << 20, 32 << 10, 16
	for name, host := range map[string]string{"of one host": "a", "of two hosts": "b"} {
		t.Run(name, func(t *testing.T) {
			l := admission.NewLedger(total)
			for range idle {
				tab := l.Open("a")
				defer tab.Close()
				if !tab.Take(spare) {
					t.Fatal("there is room")
				}
				tab.Give(spare)
			}
			if got := l.Stats().Bytes; got != idle*spare {
				t.Fatalf("idle tabs keep %d bytes, want %d", got, idle*spare)
			}
			busy := l.Open(host)
			defer busy.Close()
			if !busy.Take(total/2) || l.Stats().Bytes != total/2 {
				t.Errorf("%d bytes are kept, of which %d are in use", l.Stats().Bytes, busy.Held())
			}
		})
	}
}

// Ensure that what tabs keep is counted right, whatever the ledger takes back from them meanwhile.
func TestTab_concurrent(t *testing.T) {
	const total, tabs, rounds = 1 << 20, 8, 2_000
	l := admission.NewLedger(total)
	var wait sync.WaitGroup
	for i := range tabs {
		wait.Go(func() {
			tab, rng := l.Open(fmt.Sprint("host ", i%3)), rand.New(rand.NewPCG(uint64(i), 0))
			defer tab.Close()
			for range rounds {
				if bytes := rng.Int64N(total / 4); rng.IntN(2) == 0 && tab.Take(bytes) || tab.Take(bytes/64) {
					tab.Give(rng.Int64N(tab.Held() + 1))
				} else {
					tab.Give(tab.Held())
				}
				if s := l.Stats(); s.Bytes < 0 || s.Bytes > total {
					t.Errorf("%d bytes of %d", s.Bytes, total)
				}
			}
		})
	}
	wait.Wait()
	if s := l.Stats(); s.Bytes != 0 || s.MostHostBytes != 0 {
		t.Errorf("afterwards: %+v", s)
	}
}

// Ensure that what is there already is taken beyond the share of a host, up to twice that, and counted.
func TestTab_Force(t *testing.T) {
	l := admission.NewLedger(100)
	tab := l.Open("a")
	if tab.Take(60); tab.Held() != 0 {
		t.Error("more than half was taken")
	}
	if !tab.Force(60) {
		t.Error("twice of what is free then is refused")
	}
	if got := l.Stats().Bytes; got != 60 || tab.Held() != 60 {
		t.Errorf("%d bytes are counted, want 60", got)
	}
	if tab.Force(10) || tab.Held() != 60 {
		t.Error("more than twice of what is free was forced")
	}
}

// Ensure that a host that wants little finds it, however many others have taken all that they may have, and forced all that they
// may, at the same time or one after the other.
func TestLedger_leavesRoom(t *testing.T) {
	const total, little = 12 << 20, 40 << 10
	for _, hosts := range []int{1, 4, 16, 64} {
		for _, inTurn := range []bool{false, true} {
			l := admission.NewLedger(total)
			var tabs []*admission.Tab
			for i := range hosts {
				tabs = append(tabs, l.Open(fmt.Sprint("host ", i)))
			}
			fill := func(of ...*admission.Tab) {
				for took := true; took; {
					took = false
					for _, tab := range of {
						took = tab.Take(1<<10) || tab.Force(1<<10) || took
					}
				}
			}
			if inTurn {
				for _, tab := range tabs {
					fill(tab)
				}
			} else {
				fill(tabs...)
			}
			next := l.Open("next")
			for next.Held() < little && next.Take(1<<10) {
			}
			if used := l.Stats().Bytes; used > total || next.Held() < little {
				t.Errorf("%d hosts, in turn: %t: %d bytes of %d are taken, and the next host has %d", hosts, inTurn, used, total,
					next.Held())
			}
		}
	}
}

// Ensure that connections take what they cost, that those for which there is no room are closed, and that each gives back what it
// took, however often it is closed.
func TestLedger_Listen(t *testing.T) {
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := admission.NewLedger(8 << 10)
	bounded := l.Listen(inner, 1<<10)
	defer bounded.Close()
	served := make(chan net.Conn, 8)
	go func() {
		for conn, err := bounded.Accept(); err == nil; conn, err = bounded.Accept() {
			served <- conn
		}
	}()
	dial := func() net.Conn {
		conn, err := net.Dial("tcp", inner.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		return conn
	}
	var guests []net.Conn
	for range 3 {
		dial()
		guests = append(guests, <-served)
	}
	if admission.Charge(guests[0], 2<<10) || !admission.Charge(guests[1], 1<<10) {
		t.Error("three connections of a KiB have room for one more, and not for two")
	}
	if _, err := dial().Read(make([]byte, 1)); !errors.Is(err, io.EOF) && !isReset(err) {
		t.Errorf("one connection too many: %v, want its end", err)
	}
	for _, conn := range guests {
		conn.Close()
		conn.Close()
	}
	if got := l.Stats().Bytes; got != 0 || admission.Charge(guests[0], 1) {
		t.Errorf("afterwards %d bytes are counted", got)
	}
}

// Ensure that what does not move is to make room while room is scarce elsewhere.
func TestLedger_AlsoScarce(t *testing.T) {
	l := admission.NewLedger(1 << 20)
	tab := l.Open("a")
	defer tab.Close()
	scarce := false
	l.AlsoScarce(func() bool { return scarce })
	if tab.Tight() {
		t.Error("room is scarce in the beginning")
	}
	if scarce = true; !tab.Tight() {
		t.Error("room is not scarce while it is elsewhere")
	}
}
