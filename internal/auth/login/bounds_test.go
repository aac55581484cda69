package login_test

import (
	"context"
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"golang.org/x/crypto/bcrypt"
	"google.golang.org/grpc/peer"

	"github.com/quorate/quorate/internal/auth"
	"github.com/quorate/quorate/internal/auth/login"
)

// fromHost is the context of a call from one of many hosts.
func fromHost(ctx context.Context, host int) context.Context {
	ip := net.IPv4(10, 0, byte(host>>8), byte(host))
	return peer.NewContext(ctx, &peer.Peer{Addr: &net.TCPAddr{IP: ip, Port: 7}})
}

// guesses are logins that fail, and are compared once the gate is open.
type guesses struct {
	login         *login.Login
	state         *auth.State
	gate          chan struct{}
	now, most     atomic.Int64 // compared at once
	failed, ended atomic.Int64
	all           sync.WaitGroup
}

func newGuesses(t *testing.T) *guesses {
	g := &guesses{login: open(t, login.Options{}), state: newState(t), gate: make(chan struct{})}
	login.Compare(g.login, func(hash, password []byte) error {
		for n := g.now.Add(1); n > g.most.Load(); {
			g.most.Store(n)
		}
		<-g.gate
		g.now.Add(-1)
		return bcrypt.CompareHashAndPassword(hash, password)
	})
	return g
}

func (g *guesses) guess(t *testing.T, ctx context.Context) {
	g.all.Go(func() {
		switch _, err := g.login.Login(ctx, g.state, "alice", "guess"); {
		case errors.Is(err, login.ErrFailed):
			g.failed.Add(1)
		case errors.Is(err, context.Canceled):
			g.ended.Add(1)
		default:
			t.Errorf("got %v", err)
		}
	})
}

// Ensure that guessing passwords takes a bounded part of the member: some are compared, some wait, all others are refused, and
// changes of passwords go on.
func TestLogin_Login_bounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGuesses(t)
		l, slots := g.login, login.Slots(g.login)
		ctx, cancel := context.WithCancel(t.Context())
		for n := range slots {
			g.guess(t, fromHost(t.Context(), n))
		}
		synctest.Wait()
		for n := range login.MaxWaiting {
			g.guess(t, fromHost(ctx, slots+n))
		}
		synctest.Wait()
		if got, want := l.Stats(), (login.Stats{Hashing: slots, Waiting: login.MaxWaiting}); got != want {
			t.Errorf("got %+v, want %+v", got, want)
		}
		another := fromHost(t.Context(), slots+login.MaxWaiting)
		if _, err := l.Login(another, g.state, "root", "toor"); !errors.Is(err, login.ErrBusy) {
			t.Errorf("one more: got %v, want %v", err, login.ErrBusy)
		}
		if _, err := l.Hash(another, "x"); err != nil {
			t.Errorf("a change of a password: %v", err)
		}
		cancel()
		synctest.Wait()
		if got := g.ended.Load(); got != login.MaxWaiting {
			t.Errorf("%d of those that wait ended with their context, want %d", got, login.MaxWaiting)
		}
		close(g.gate)
		g.all.Wait()
		if g.failed.Load() != int64(slots) || g.most.Load() != int64(slots) {
			t.Errorf("%d compared, %d at once, want %d", g.failed.Load(), g.most.Load(), slots)
		}
		if got, want := l.Stats(), (login.Stats{Refused: 1}); got != want {
			t.Errorf("got %+v, want %+v", got, want)
		}
		if _, err := l.Login(t.Context(), g.state, "alice", "sesame"); err != nil {
			t.Errorf("afterwards: %v", err)
		}
	})
}

// Ensure that one host that guesses passwords, over whatever connections, keeps only itself from logging in.
func TestLogin_Login_oneHost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGuesses(t)
		attacker := fromHost(t.Context(), 1)
		for range login.MaxHostLogins {
			g.guess(t, attacker)
		}
		synctest.Wait()
		if _, err := g.login.Login(attacker, g.state, "root", "toor"); !errors.Is(err, login.ErrBusy) {
			t.Errorf("one more from there: got %v, want %v", err, login.ErrBusy)
		}
		var honest sync.WaitGroup
		for range login.MaxHostLogins {
			honest.Go(func() {
				if _, err := g.login.Login(fromHost(t.Context(), 2), g.state, "root", "toor"); err != nil {
					t.Errorf("from another host: %v", err)
				}
			})
		}
		synctest.Wait()
		if _, err := g.login.Hash(attacker, "x"); err != nil {
			t.Errorf("a change of a password: %v", err)
		}
		close(g.gate)
		honest.Wait()
		g.all.Wait()
		if got, want := g.login.Stats(), (login.Stats{Refused: 1}); got != want {
			t.Errorf("got %+v, want %+v", got, want)
		}
	})
}

// Ensure that changes of passwords are hashed one at a time, and that a bounded number waits, of one host, too: all are root's.
func TestLogin_Hash_bounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, s := open(t, login.Options{}), newState(t)
		gate := make(chan struct{})
		login.Generate(l, func(password []byte, cost int) ([]byte, error) {
			<-gate
			return bcrypt.GenerateFromPassword(password, cost)
		})
		var all sync.WaitGroup
		for range 1 + login.MaxWaiting {
			all.Go(func() {
				if _, err := l.Hash(fromHost(t.Context(), 1), "x"); err != nil {
					t.Error(err)
				}
			})
		}
		synctest.Wait()
		if got, want := l.Stats(), (login.Stats{Hashing: 1, Waiting: login.MaxWaiting}); got != want {
			t.Errorf("got %+v, want %+v", got, want)
		}
		if _, err := l.Hash(t.Context(), "x"); !errors.Is(err, login.ErrBusy) {
			t.Errorf("one more: got %v, want %v", err, login.ErrBusy)
		}
		if _, err := l.Login(t.Context(), s, "root", "toor"); err != nil {
			t.Errorf("a login meanwhile: %v", err)
		}
		close(gate)
		all.Wait()
		if got, want := l.Stats(), (login.Stats{Refused: 1}); got != want {
			t.Errorf("got %+v, want %+v", got, want)
		}
	})
}

// Ensure that hosts take turns: a user that logs in once waits for one guess of a host that guesses as often as it may, not
// for all.
func TestLogin_Login_turns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGuesses(t)
		order, turn := make(chan string, 64), make(chan struct{})
		login.Compare(g.login, func(_, password []byte) error {
			<-turn
			order <- string(password)
			return nil
		})
		var all sync.WaitGroup
		ask := func(host int, password string) {
			all.Go(func() { _, _ = g.login.Login(fromHost(t.Context(), host), g.state, "alice", password) })
			synctest.Wait()
		}
		slots := login.Slots(g.login)
		for n := range slots {
			ask(100+n, "first")
		}
		for range login.MaxHostLogins {
			ask(1, "guess")
		}
		ask(2, "honest")
		for n := range slots + 2 {
			turn <- struct{}{}
			if got := <-order; n == slots+1 && got != "honest" {
				t.Errorf("after one guess comes another, not the other host: %s", got)
			}
			synctest.Wait()
		}
		close(turn)
		all.Wait()
		if got, want := g.login.Stats(), (login.Stats{}); got != want {
			t.Errorf("got %+v, want %+v", got, want)
		}
	})
}
