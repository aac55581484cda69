package answers

import (
	"context"
	"errors"
	"net"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/peer"

	"github.com/quorate/quorate/internal/base/tlsconn"
	"github.com/quorate/quorate/internal/kv"
)

// from returns the context of a call from a host, on a connection of its own.
func from(ctx context.Context, t *testing.T, address string) context.Context {
	t.Helper()
	near, far := net.Pipe()
	t.Cleanup(func() { _, _ = near.Close(), far.Close() })
	conn, info, err := tlsconn.Credentials().ServerHandshake(near)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return byConn(ctx, address, info)
}

func byConn(ctx context.Context, address string, info credentials.AuthInfo) context.Context {
	return peer.NewContext(ctx, &peer.Peer{Addr: &net.TCPAddr{IP: net.ParseIP(address), Port: 1}, AuthInfo: info})
}

// fill takes answers of a MiB each for a call until no more fit.
func fill(b *Budget, call context.Context) (taken []*Account) {
	for {
		a := b.OpenFor(call, 0)
		if a.Take(mib) != nil {
			return taken
		}
		taken = append(taken, a)
	}
}

// Ensure that a host leaves as much for others as it has, however many there are, and that the only answer of a host may be
// larger.
func TestBudget_fits(t *testing.T) {
	b := New(96*mib, 48*mib)
	var all []*Account
	for i, host := range []string{"10.0.0.1", "10.0.0.2", "10.0.0.3"} {
		taken := fill(b, from(t.Context(), t, host))
		if want := 24 >> i; len(taken) != want { // each answer counts twice
			t.Errorf("host %d has %d MiB, want %d", i, len(taken), want)
		}
		all = append(all, taken...)
	}
	if err := b.OpenFor(from(t.Context(), t, "10.0.0.4"), 0).Take(3 * mib); err != nil {
		t.Errorf("another host finds nothing: %v", err)
	}
	if s := b.Stats(); s.MostHostBytes != 48*mib {
		t.Errorf("one host has %d bytes", s.MostHostBytes)
	}
	runtime.KeepAlive(all) // a garbage account gives back its bytes

	b = New(96*mib, 48*mib)
	small := b.OpenFor(from(t.Context(), t, "10.0.0.1"), 0)
	large, second := b.OpenFor(from(t.Context(), t, "10.0.0.2"), 0), b.OpenFor(from(t.Context(), t, "10.0.0.3"), 0)
	if err := errors.Join(small.Take(mib), large.Take(36*mib)); err != nil {
		t.Errorf("the only answer of a host is large: %v", err)
	}
	if err := second.Take(8 * mib); !errors.Is(err, kv.ErrAnswersBusy) {
		t.Errorf("two are at once: %v", err)
	}
	large.Release()
	if err := second.Take(28 * mib); err != nil {
		t.Errorf("after the first: %v", err)
	}
	runtime.KeepAlive(small)
}

// Ensure that hosts take turns, that a large request does not keep smaller ones waiting, and that no host fills the queue.
func TestBudget_reserve_turns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := New(16*mib, 16*mib)
		most, some := b.OpenFor(from(t.Context(), t, "10.0.0.7"), 0), b.OpenFor(from(t.Context(), t, "10.0.0.8"), 0)
		if err := errors.Join(some.Take(mib/2), most.Take(15*mib/2)); err != nil {
			t.Fatal(err)
		}
		granted := make(chan *Account, 9)
		var all []*Account
		wait := func(host string, bytes int64) {
			a := b.OpenFor(from(t.Context(), t, host), 0)
			all = append(all, a)
			go func() {
				if a.reserve(t.Context(), bytes) == nil {
					granted <- a
				}
			}()
			synctest.Wait()
		}
		wait("10.0.0.9", 16*mib)
		for range 3 {
			wait("10.0.0.1", 4*mib)
		}
		wait("10.0.0.2", 4*mib)
		if s := b.Stats(); s.Waiting != 5 {
			t.Errorf("%d wait", s.Waiting)
		}
		for i, released := range []*Account{most, all[1], all[2]} {
			released.Release()
			synctest.Wait()
			if len(granted) != 2+i { // first one of each host with a smaller request
				t.Errorf("after release %d there are %d", i, len(granted))
			}
		}
		for i, want := range []int64{0, 0, 0, 4 * mib, 4 * mib} {
			if all[i].share.bytes != want {
				t.Errorf("%d has %d bytes, want %d", i, all[i].share.bytes, want)
			}
		}
		<-time.After(patience)
		synctest.Wait()
		if s := b.Stats(); s.Waiting != 0 || s.Refused != 1 {
			t.Errorf("%+v: want the large one refused", s)
		}
		for range maxHostWaiting + 1 {
			wait("10.0.0.1", 16*mib)
		}
		if s := b.Stats(); s.Waiting != maxHostWaiting || s.Refused != 2 {
			t.Errorf("%+v: want %d to wait", s, maxHostWaiting)
		}
		<-time.After(patience)
		runtime.KeepAlive(all)
		runtime.KeepAlive(some)
	})
}

// Ensure that an answer which a client reads is left alone, and that one which it does not read is given up with its
// connection: sooner where others wait for the memory.
func TestAccount_Sending(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := New(16*mib, 16*mib)
		answer := func(host string) (*Account, *tlsconn.Conn) {
			call := from(t.Context(), t, host)
			a := b.OpenFor(call, 0)
			if err := a.Take(2 * mib); err != nil || !a.Sending(2*mib) {
				t.Fatal(err)
			}
			return a, tlsconn.ConnOf(call)
		}
		slow, slowConn := answer("10.0.0.1")
		stuck, stuckConn := answer("10.0.0.2")
		if s := b.Stats(); s.UsedBytes != 4*mib {
			t.Errorf("%d bytes are counted: an answer that was encoded is in memory once", s.UsedBytes)
		}
		for range unreadTimeout / (20 * time.Second) {
			<-time.After(20 * time.Second)
			slow.Taken()
		}
		<-time.After(sweepInterval)
		synctest.Wait()
		if s := b.Stats(); slowConn.Context().Err() != nil || stuckConn.Context().Err() == nil || s.Unread != 1 || s.UsedBytes != 2*mib {
			t.Errorf("after %v: %+v", unreadTimeout, s)
		}
		<-time.After(scarceUnreadTimeout)
		if slowConn.Context().Err() != nil {
			t.Error("nobody waits, and an unread answer is given up early")
		}
		if err := b.OpenFor(from(t.Context(), t, "10.0.0.3"), 0).reserve(t.Context(), 15*mib); err != nil {
			t.Errorf("who waits does not get what nobody reads: %v", err)
		}
		if slowConn.Context().Err() == nil {
			t.Error("an unread answer keeps memory that is waited for")
		}
		slow.Taken()
		slow.Release()
		stuck.Release()
		synctest.Wait()
	})
}

// Ensure that the end of a connection gives back the bytes of its answers.
func TestAccount_Sending_gone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := New(16*mib, 16*mib)
		call := from(t.Context(), t, "10.0.0.1")
		for range 2 {
			if a := b.OpenFor(call, 0); a.Take(mib) != nil || !a.Sending(mib) {
				t.Fatal("no room")
			}
		}
		_ = tlsconn.ConnOf(call).Close()
		synctest.Wait()
		if used := b.UsedBytes(); used != 0 || len(b.hosts) != 0 {
			t.Errorf("%d bytes and %d hosts are left", used, len(b.hosts))
		}
		inside := b.OpenFor(t.Context(), 0)
		if inside.Take(mib) != nil || inside.Sending(mib) {
			t.Error("an answer to nobody outside is watched")
		}
		inside.Address(call)
		if s := b.Stats(); s.MostHostBytes != 2*mib || b.hosts["10.0.0.1"] == nil {
			t.Errorf("its host is not counted: %+v", s)
		}
		inside.Release()
	})
}
