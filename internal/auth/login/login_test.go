package login_test

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/bcrypt"

	"github.com/quorate/quorate/internal/auth"
	"github.com/quorate/quorate/internal/auth/login"
	"github.com/quorate/quorate/internal/base/env"
)

const cost = bcrypt.MinCost

// hand is a clock that tests turn.
type hand struct{ now time.Time }

func (h *hand) Now() time.Time                                { return h.now }
func (h *hand) AfterFunc(d time.Duration, f func()) env.Timer { return time.AfterFunc(d, f) }
func (h *hand) turn(d time.Duration)                          { h.now = h.now.Add(d) }

func newClock() *hand { return &hand{now: time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)} }

var secret = bytes.Repeat([]byte{7}, 32)

func hashOf(password string) []byte {
	hash, err := bcrypt.GenerateFromPassword([]byte(password), cost)
	if err != nil {
		panic(err)
	}
	return hash
}

func apply(t testing.TB, s *auth.State, changes ...auth.Change) *auth.State {
	t.Helper()
	for i := range changes {
		next, _, err := s.Next(&changes[i])
		if err != nil {
			t.Fatal(err)
		}
		s = next
	}
	return s
}

// newState has root, alice whose password is "sesame", bob who never had one, and carol whose hash is empty.
func newState(t testing.TB) *auth.State {
	t.Helper()
	return apply(t, auth.New(),
		auth.Change{Kind: auth.UserAdd, User: "root", Hash: hashOf("toor")},
		auth.Change{Kind: auth.UserGrantRole, User: "root", Role: "root"},
		auth.Change{Kind: auth.UserAdd, User: "alice", Hash: hashOf("sesame")},
		auth.Change{Kind: auth.UserAdd, User: "bob", NoPassword: true},
		auth.Change{Kind: auth.UserAdd, User: "carol"},
		auth.Change{Kind: auth.Enable, Secret: secret})
}

func open(t testing.TB, o login.Options) *login.Login {
	t.Helper()
	o.BcryptCost = cost
	if o.Clock == nil {
		o.Clock = newClock()
	}
	l, err := login.New(o)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func tokenOf(t testing.TB, l *login.Login, s *auth.State) string {
	t.Helper()
	token, err := l.Login(t.Context(), s, "alice", "sesame")
	if err != nil {
		t.Fatal(err)
	}
	return token
}

func wantUser(t testing.TB, l *login.Login, s *auth.State, token string) {
	t.Helper()
	if by, err := l.Authenticate(s, token); err != nil || !alices(s, by) {
		t.Fatalf("got %+v, %v, want alice, at %d or later", by, err, since(s))
	}
}

func wantInvalid(t testing.TB, l *login.Login, s *auth.State, token string) {
	t.Helper()
	if by, err := l.Authenticate(s, token); !errors.Is(err, login.ErrInvalidToken) || !by.IsZero() {
		t.Fatalf("got %+v, %v, want %v", by, err, login.ErrInvalidToken)
	}
}

// Ensure that a client cannot tell by the answer, or by the work that it took, whether a user exists or has a password.
func TestLogin_Login_failures(t *testing.T) {
	for _, row := range []struct{ name, user, password string }{
		{"a wrong password", "alice", "simsalabim"},
		{"no password", "alice", ""},
		{"the password of another user", "alice", "toor"},
		{"an unknown user", "mallory", "sesame"},
		{"nobody", "", ""},
		{"a user that never had a password", "bob", ""},
		{"a user without a hash", "carol", ""},
		{"a wrong password that is too long to be anybody's", "alice", strings.Repeat("x", 1<<20)},
	} {
		t.Run(row.name, func(t *testing.T) {
			l, s := open(t, login.Options{}), newState(t)
			var compared []int
			login.Compare(l, func(hash, password []byte) error {
				at, err := bcrypt.Cost(hash)
				if err != nil {
					t.Fatalf("compared with what is no hash: %v", err)
				}
				compared = append(compared, at)
				return bcrypt.CompareHashAndPassword(hash, password)
			})
			token, err := l.Login(t.Context(), s, row.user, row.password)
			if !errors.Is(err, login.ErrFailed) || token != "" {
				t.Errorf("got %q, %v, want %v", token, err, login.ErrFailed)
			}
			if len(compared) != 1 || compared[0] != cost {
				t.Errorf("compared at the costs %v, want once at %d", compared, cost)
			}
		})
	}
}

// Ensure that a user without a hash stays out even if bcrypt says that the password is right.
func TestLogin_Login_withoutHash(t *testing.T) {
	l, s := open(t, login.Options{}), newState(t)
	login.Compare(l, func([]byte, []byte) error { return nil })
	for _, user := range []string{"bob", "carol", "mallory"} {
		if _, err := l.Login(t.Context(), s, user, "x"); !errors.Is(err, login.ErrFailed) {
			t.Errorf("%s: got %v, want %v", user, err, login.ErrFailed)
		}
	}
}

func TestLogin_notEnabled(t *testing.T) {
	l, s := open(t, login.Options{}), newState(t)
	token := tokenOf(t, l, s)
	s = apply(t, s, auth.Change{Kind: auth.Disable})
	login.Compare(l, func([]byte, []byte) error { t.Error("a password was compared"); return nil })
	if _, err := l.Login(t.Context(), s, "alice", "sesame"); !errors.Is(err, login.ErrNotEnabled) {
		t.Errorf("got %v, want %v", err, login.ErrNotEnabled)
	}
	for _, text := range []string{token, "", "rubbish"} {
		if by, err := l.Authenticate(s, text); err != nil || !by.IsZero() {
			t.Errorf("a token is not needed: got %+v, %v", by, err)
		}
	}
}

func TestLogin_Hash(t *testing.T) {
	l := open(t, login.Options{})
	for _, password := range []string{"sesame", "", strings.Repeat("x", 72)} {
		hash, err := l.Hash(t.Context(), password)
		if err != nil || bcrypt.CompareHashAndPassword(hash, []byte(password)) != nil {
			t.Errorf("the hash of %d bytes is not theirs: %v", len(password), err)
		}
		if at, _ := bcrypt.Cost(hash); at != cost {
			t.Errorf("got cost %d, want %d", at, cost)
		}
	}
	_, err := l.Hash(t.Context(), strings.Repeat("x", 73))
	if !errors.Is(err, login.ErrPasswordTooLong) || err.Error() != "bcrypt: password length exceeds 72 bytes" {
		t.Errorf("got %v, want what etcd answers", err)
	}
}

func TestLogin_contextEnded(t *testing.T) {
	l, s := open(t, login.Options{}), newState(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := l.Login(ctx, s, "alice", "sesame"); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want %v", err, context.Canceled)
	}
	if got := l.Stats(); got != (login.Stats{}) {
		t.Errorf("a place stays taken: %+v", got)
	}
}

// alices reports whether alice was authenticated, at the revision of her password (a simple token) or of the token (JWT).
func alices(s *auth.State, by auth.Credentials) bool {
	return by.User == "alice" && !by.Member && (by.Revision == since(s) || by.Revision == s.Revision())
}

// since is the revision of alice's password.
func since(s *auth.State) uint64 {
	alice, _ := s.User("alice")
	return alice.Since
}
