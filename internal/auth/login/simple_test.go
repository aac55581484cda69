package login_test

import (
	"bytes"
	"encoding/base64"
	"errors"
	"strings"
	"testing"
	"time"
	"unsafe"

	"github.com/quorate/quorate/internal/auth"
	"github.com/quorate/quorate/internal/auth/login"
	"github.com/quorate/quorate/internal/base/env"
)

func TestLogin_Authenticate_simple(t *testing.T) {
	l, s := open(t, login.Options{}), newState(t)
	token := tokenOf(t, l, s)
	wantUser(t, l, s, token)
	if other := tokenOf(t, l, s); other == token {
		t.Error("two logins got one token")
	}
	if strings.Trim(token, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_") != "" {
		t.Errorf("the token cannot be a header: %q", token)
	}
	wantUser(t, open(t, login.Options{}), s, token) // another member, or this one after a restart
}

// Ensure that a token lives as long as what it was issued for, and no longer.
func TestLogin_Authenticate_otherState(t *testing.T) {
	hash := hashOf("sesame")
	for _, row := range []struct {
		name    string
		changes []auth.Change
		good    bool
	}{
		{"another user comes", []auth.Change{{Kind: auth.UserAdd, User: "dave"}}, true},
		{"the user gets a role", []auth.Change{{Kind: auth.RoleAdd, Role: "r"},
			{Kind: auth.UserGrantRole, User: "alice", Role: "r"}}, true},
		{"the user gets the same password again", []auth.Change{{Kind: auth.UserPassword, User: "alice", Hash: hash}}, false},
		{"the user goes", []auth.Change{{Kind: auth.UserDelete, User: "alice"}}, false},
		{"the user goes and comes back", []auth.Change{{Kind: auth.UserDelete, User: "alice"},
			{Kind: auth.UserAdd, User: "alice", Hash: hash}}, false},
		{"authentication is enabled anew", []auth.Change{{Kind: auth.Disable},
			{Kind: auth.Enable, Secret: login.NewSecret()}}, false},
	} {
		t.Run(row.name, func(t *testing.T) {
			l, s := open(t, login.Options{}), newState(t)
			token := tokenOf(t, l, s)
			wantUser(t, l, s, token) // so that its use is remembered
			s = apply(t, s, row.changes...)
			if row.good {
				wantUser(t, l, s, token)
			} else {
				wantInvalid(t, l, s, token)
			}
		})
	}
}

// Ensure that a token is void under another secret although it is remembered, and good again under the first.
func TestLogin_Authenticate_otherSecret(t *testing.T) {
	l, s := open(t, login.Options{}), newState(t)
	token := tokenOf(t, l, s)
	other := apply(t, auth.New(),
		auth.Change{Kind: auth.UserAdd, User: "root", Hash: hashOf("toor")},
		auth.Change{Kind: auth.UserGrantRole, User: "root", Role: "root"},
		auth.Change{Kind: auth.UserAdd, User: "alice", Hash: hashOf("sesame")},
		auth.Change{Kind: auth.Enable, Secret: login.NewSecret()})
	for range 2 {
		wantUser(t, l, s, token)
		wantUser(t, l, s, token) // remembered
		wantInvalid(t, l, other, token)
		wantUser(t, l, other, tokenOf(t, l, other))
	}
}

func TestLogin_Authenticate_expiry(t *testing.T) {
	const ttl = time.Minute
	clock, s := newClock(), newState(t)
	l := open(t, login.Options{TTL: ttl, Clock: clock})
	token := tokenOf(t, l, s)
	for range 5 { // used in time, again and again
		clock.turn(ttl)
		wantUser(t, l, s, token)
	}
	wantInvalid(t, open(t, login.Options{TTL: ttl, Clock: clock}), s, token) // a member that knows of no use
	clock.turn(ttl + time.Nanosecond)
	wantInvalid(t, l, s, token)
	clock.turn(-time.Second) // a clock that is set back brings nothing back
	wantInvalid(t, l, s, token)

	unused := tokenOf(t, l, s)
	clock.turn(ttl + time.Millisecond)
	wantInvalid(t, l, s, unused)
}

// steppedClock is the clock of a machine: it may be set, and its monotonic reading goes on.
type steppedClock struct {
	env.WallClock
	set, passed time.Duration
}

var begun = time.Now()

func (c *steppedClock) Now() time.Time {
	now := begun.Add(c.passed) // moves both readings
	parts := (*struct {
		wall uint64 // seconds from bit 30 on
		mono int64
		loc  *time.Location
	})(unsafe.Pointer(&now))
	parts.wall += uint64(int64(c.set/time.Second)) << 30
	return now
}

// Ensure that the time since the last use of a token is what has passed, also when the clock of the machine is set meanwhile.
func TestLogin_Authenticate_clockIsSet(t *testing.T) {
	const ttl = time.Minute
	clock, s := &steppedClock{set: 10 * time.Hour}, newState(t)
	l := open(t, login.Options{TTL: ttl, Clock: clock})
	early := tokenOf(t, l, s)
	wantUser(t, l, s, early)
	clock.set = 0
	late := tokenOf(t, l, s)
	wantUser(t, l, s, late)
	clock.passed += 9 * time.Hour
	wantInvalid(t, l, s, late)
	wantInvalid(t, l, s, early)

	used := tokenOf(t, l, s)
	wantUser(t, l, s, used)
	clock.passed += time.Second
	clock.set += 2 * ttl
	wantUser(t, l, s, used)
}

// Ensure that a token that is void takes no place, and that one which is remembered does not stay young by being refused.
func TestLogin_Authenticate_voidUses(t *testing.T) {
	const ttl = time.Minute
	clock, s := newClock(), newState(t)
	l := open(t, login.Options{TTL: ttl, Clock: clock})
	used, unused := tokenOf(t, l, s), tokenOf(t, l, s)
	wantUser(t, l, s, used)
	gone := apply(t, s, auth.Change{Kind: auth.UserDelete, User: "alice"})
	wantInvalid(t, l, gone, unused)
	if got := l.Stats().Used; got != 1 {
		t.Errorf("%d uses are remembered, want that of one token", got)
	}
	clock.turn(ttl)
	wantInvalid(t, l, gone, used)
	clock.turn(time.Second)
	wantInvalid(t, l, gone, used)
	if got := l.Stats().Used; got != 0 {
		t.Errorf("%d uses of void tokens are remembered", got)
	}
}

func TestLogin_Authenticate_defaultTTL(t *testing.T) {
	clock, s := newClock(), newState(t)
	l := open(t, login.Options{Clock: clock})
	early, late := tokenOf(t, l, s), tokenOf(t, l, s)
	clock.turn(login.DefaultTTL)
	wantUser(t, l, s, early)
	clock.turn(time.Millisecond)
	wantInvalid(t, l, s, late)
}

// Ensure that clocks of members may differ by the TTL.
func TestLogin_Authenticate_future(t *testing.T) {
	const ttl = time.Minute
	ahead, s := newClock(), newState(t)
	ahead.turn(ttl)
	token := tokenOf(t, open(t, login.Options{TTL: ttl, Clock: ahead}), s)
	wantUser(t, open(t, login.Options{TTL: ttl}), s, token)
	ahead.turn(time.Millisecond)
	token = tokenOf(t, open(t, login.Options{TTL: ttl, Clock: ahead}), s)
	wantInvalid(t, open(t, login.Options{TTL: ttl}), s, token)
}

// Ensure that the memory of uses is bounded, and that what it forgets shortens the life of a token at most.
func TestLogin_Authenticate_manyUses(t *testing.T) {
	one := login.UseBytes(tokenOf(t, open(t, login.Options{}), newState(t)), "alice")
	for _, row := range []struct {
		bytes int64
		most  int
	}{{0, int(login.MaxUseBytes / one)}, {100*one + one/2, 100}, {1 << 40, int(login.MaxUseBytes / one)}} {
		testManyUses(t, row.bytes, row.most)
	}
}

func testManyUses(t *testing.T, bytes int64, most int) {
	t.Helper()
	const ttl = time.Minute
	clock, s := newClock(), newState(t)
	l := open(t, login.Options{TTL: ttl, UseBytes: bytes, Clock: clock})
	login.Compare(l, func([]byte, []byte) error { return nil })
	first, second := tokenOf(t, l, s), tokenOf(t, l, s)
	wantUser(t, l, s, first)
	wantUser(t, l, s, second)
	clock.turn(ttl / 2)
	wantUser(t, l, s, second)
	for range most - 1 {
		wantUser(t, l, s, tokenOf(t, l, s))
	}
	if got := l.Stats().Used; got != most {
		t.Errorf("%d uses are remembered, want %d", got, most)
	}
	wantUser(t, l, s, first) // by its issue; its use takes the place of the oldest, which was second's
	clock.turn(ttl/2 + time.Millisecond)
	wantUser(t, l, s, first)
	wantInvalid(t, l, s, second)
	clock.turn(2 * ttl)
	wantInvalid(t, l, s, first)
	if got := l.Stats().Used; got != 0 {
		t.Errorf("%d uses are remembered after all tokens expired", got)
	}
}

func TestLogin_Authenticate_hostile(t *testing.T) {
	l, s := open(t, login.Options{}), newState(t)
	token := tokenOf(t, l, s)
	raw, err := base64.RawURLEncoding.DecodeString(token)
	if err != nil {
		t.Fatal(err)
	}
	for i := range raw {
		for _, bit := range []byte{1, 0x80} {
			changed := bytes.Clone(raw)
			changed[i] ^= bit
			wantInvalid(t, l, s, base64.RawURLEncoding.EncodeToString(changed))
		}
		wantInvalid(t, l, s, base64.RawURLEncoding.EncodeToString(raw[:i]))
	}
	for _, text := range []string{"", " ", "Bearer " + token, token + "\n", token[:4] + "\r\n" + token[4:], token + "=", token + "A",
		strings.Repeat("A", login.MaxTokenBytes), strings.Repeat("A", 1<<20), "\x00", "ä"} {
		wantInvalid(t, l, s, text)
	}
	wantUser(t, l, s, token)
}

// Ensure that a short secret, which could be guessed, signs nothing and checks nothing.
func TestLogin_shortSecret(t *testing.T) {
	for _, short := range [][]byte{nil, {}, bytes.Repeat([]byte{7}, 15)} {
		l, s := open(t, login.Options{}), newState(t)
		s = apply(t, s, auth.Change{Kind: auth.Disable}, auth.Change{Kind: auth.Enable, Secret: short})
		if _, err := l.Login(t.Context(), s, "alice", "sesame"); !errors.Is(err, login.ErrNoSecret) {
			t.Errorf("got %v, want %v", err, login.ErrNoSecret)
		}
		alice, _ := s.User("alice")
		wantInvalid(t, l, s, login.Forge(short, alice, newClock().now))
		s = apply(t, s, auth.Change{Kind: auth.Disable}, auth.Change{Kind: auth.Enable, Secret: secret})
		alice, _ = s.User("alice")
		wantUser(t, l, s, login.Forge(secret, alice, newClock().now))
	}
}

// Ensure that a token may be asked for again without a look at its text: as long as Authenticate would find it good by the same
// State, and that this counts as a use.
func TestLogin_Again(t *testing.T) {
	const ttl = time.Minute
	clock, s := newClock(), newState(t)
	l := open(t, login.Options{TTL: ttl, Clock: clock})
	token := tokenOf(t, l, s)
	if l.Again(s, token) != nil {
		t.Error("a token that was never found good")
	}
	wantUser(t, l, s, token)
	again := l.Again(s, token)
	for range 5 {
		clock.turn(ttl)
		if !again() {
			t.Fatal("a token that is used in time is not good")
		}
	}
	wantUser(t, l, s, token)
	clock.turn(ttl + time.Nanosecond)
	if again() {
		t.Error("a token that has expired is good")
	}
	wantInvalid(t, l, s, token)

	forgotten := open(t, login.Options{TTL: ttl, Clock: clock, UseBytes: 1})
	first, second := tokenOf(t, forgotten, s), tokenOf(t, forgotten, s)
	wantUser(t, forgotten, s, first)
	again = forgotten.Again(s, first)
	wantUser(t, forgotten, s, second)
	if again == nil || again() {
		t.Error("a token that was forgotten is good without a look at it")
	}
}
