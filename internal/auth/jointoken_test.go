package auth_test

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/quorate/quorate/internal/auth"
)

func newToken(t *testing.T, at byte) (auth.JoinToken, string) {
	t.Helper()
	return auth.NewToken(func(b []byte) {
		for i := range b {
			b[i] = at + byte(i)
		}
	})
}

// Ensure that a token admits as many newcomers as it says, each as often as it asks, until it expires.
func TestState_Admits(t *testing.T) {
	token, text := newToken(t, 7)
	token.Expires, token.Uses, token.Owner = 200, 2, "root"
	s := apply(t, auth.New(), auth.Change{Kind: auth.JoinTokenAdd, Token: &token, Now: 100})
	id, hash, err := auth.ParseToken(text)
	if err != nil || id != token.ID || hash != token.Hash {
		t.Fatalf("the text %q gives %q, %x, %v; the token is %+v", text, id, hash, err, token)
	}
	use := func(who byte, now int64) error {
		c := auth.Change{Kind: auth.JoinTokenUse, Token: &auth.JoinToken{ID: id, Hash: hash}, Newcomer: [32]byte{who}, Now: now}
		asked, before := s.Admits(id, hash, c.Newcomer, now), s.Admitted(id, c.Newcomer)
		next, rows, err := s.Next(&c)
		if err == nil && before != (len(rows) == 0) || (err == nil) != next.Admitted(id, c.Newcomer) {
			t.Errorf("newcomer %d at %d: admitted before: %t, %d rows, %v", who, now, before, len(rows), err)
		}
		if s = next; !errors.Is(err, asked) {
			t.Errorf("newcomer %d at %d: Admits says %v, and the change %v", who, now, asked, err)
		}
		return err
	}
	for _, row := range []struct {
		who  byte
		now  int64
		want error
	}{
		{1, 110, nil}, {1, 120, nil}, {2, 130, nil}, {3, 140, auth.ErrTokenUsed}, {2, 199, nil},
	} {
		if err := use(row.who, row.now); !errors.Is(err, row.want) {
			t.Errorf("newcomer %d at %d: %v, want %v", row.who, row.now, err, row.want)
		}
	}
	if err := s.Admits(id, hash, [32]byte{2}, 200); !errors.Is(err, auth.ErrTokenExpired) {
		t.Errorf("at its end: %v", err)
	}
	if err := s.Admits(id, sha256.Sum256([]byte("guessed")), [32]byte{2}, 150); !errors.Is(err, auth.ErrTokenInvalid) {
		t.Errorf("another secret: %v", err)
	}
	if revision := s.Revision(); revision != 1 {
		t.Errorf("the revision is %d: logins would be looked at again", revision)
	}
	if next, rows, err := s.Next(&auth.Change{Kind: auth.JoinTokenDelete, Token: &auth.JoinToken{ID: id}, Now: 150}); err != nil ||
		len(next.JoinTokens(0)) != 0 || len(rows) != 2 {
		t.Errorf("deleted: %v, %d rows, %d tokens are left", err, len(rows), len(next.JoinTokens(0)))
	}
}

// Ensure that a token admits no process once its owner may not add members any more.
func TestState_Admits_ownerIsNoRoot(t *testing.T) {
	token, text := newToken(t, 7)
	token.Expires, token.Uses, token.Owner = 200, 2, "ann"
	id, hash, err := auth.ParseToken(text)
	if err != nil {
		t.Fatal(err)
	}
	was := apply(t, auth.New(),
		auth.Change{Kind: auth.UserAdd, User: "root", Hash: []byte("h")},
		auth.Change{Kind: auth.UserGrantRole, User: "root", Role: "root"},
		auth.Change{Kind: auth.UserAdd, User: "ann", Hash: []byte("h")},
		auth.Change{Kind: auth.UserGrantRole, User: "ann", Role: "root"},
		auth.Change{Kind: auth.Enable, Secret: []byte("s")}, auth.Change{Kind: auth.JoinTokenAdd, Token: &token, Now: 100})
	if err := was.Admits(id, hash, [32]byte{1}, 110); err != nil {
		t.Errorf("while its owner is root: %v", err)
	}
	for _, c := range []auth.Change{
		{Kind: auth.UserDelete, User: "ann"}, {Kind: auth.UserRevokeRole, User: "ann", Role: "root"},
	} {
		s := apply(t, was, c)
		use := auth.Change{Kind: auth.JoinTokenUse, Token: &auth.JoinToken{ID: id, Hash: hash}, Newcomer: [32]byte{1}, Now: 110}
		if _, _, err := s.Next(&use); !errors.Is(err, auth.ErrTokenInvalid) {
			t.Errorf("after change %d: %v", c.Kind, err)
		}
	}
}

// Ensure that tokens are bounded in number, that expired ones make room, and that none is overwritten.
func TestState_Next_joinTokens(t *testing.T) {
	s := auth.New()
	add := func(at int, expires, now int64) error {
		token := auth.JoinToken{ID: fmt.Sprintf("%08x", at), Expires: expires, Uses: 1}
		next, _, err := s.Next(&auth.Change{Kind: auth.JoinTokenAdd, Token: &token, Now: now})
		s = next
		return err
	}
	for at := range auth.MaxJoinTokens {
		if err := add(at, int64(1000+at), 10); err != nil {
			t.Fatal(err)
		}
	}
	if err := add(auth.MaxJoinTokens, 2000, 10); !errors.Is(err, auth.ErrTooManyTokens) {
		t.Errorf("one too many: %v", err)
	}
	if err := add(5, 3000, 10); !errors.Is(err, auth.ErrTokenExists) {
		t.Errorf("the same id again: %v", err)
	}
	if err := add(auth.MaxJoinTokens, 3000, 1000); err != nil || len(s.JoinTokens(0)) != auth.MaxJoinTokens {
		t.Errorf("once one has expired: %v, %d tokens", err, len(s.JoinTokens(0)))
	}
	for _, bad := range []auth.JoinToken{
		{ID: "0000000A", Expires: 5000, Uses: 1}, {ID: "", Expires: 5000, Uses: 1}, {ID: "00000aaa", Expires: 10, Uses: 1},
		{ID: "00000aaa", Expires: 5000}, {ID: "00000aaa", Expires: 5000, Uses: auth.MaxTokenUses + 1},
		{ID: "00000aaa", Expires: 5000, Uses: 1, Owner: strings.Repeat("x", 2000)},
	} {
		if _, _, err := s.Next(&auth.Change{Kind: auth.JoinTokenAdd, Token: &bad, Now: 10}); !errors.Is(err, auth.ErrTokenInvalid) {
			t.Errorf("%+v: %v", bad, err)
		}
	}
}

// Ensure that enabling authentication ends the tokens of clients that had not logged in, and keeps root's.
func TestState_Next_enableEndsOwnerless(t *testing.T) {
	s := apply(t, auth.New(), auth.Change{Kind: auth.UserAdd, User: "root", Hash: []byte("h")},
		auth.Change{Kind: auth.UserGrantRole, User: "root", Role: "root"},
		auth.Change{Kind: auth.JoinTokenAdd, Token: &auth.JoinToken{ID: "00000001", Expires: 9, Uses: 1}},
		auth.Change{Kind: auth.JoinTokenAdd, Token: &auth.JoinToken{ID: "00000002", Expires: 9, Uses: 1, Owner: "root"}},
		auth.Change{Kind: auth.Enable, Secret: make([]byte, 32)})
	if left := s.JoinTokens(0); len(left) != 1 || left[0].Owner != "root" {
		t.Errorf("left: %+v", left)
	}
}

func TestParseToken_malformed(t *testing.T) {
	_, good := newToken(t, 1)
	for _, text := range []string{"", ".", good[:len(good)-1], good + "0", strings.Replace(good, ".", "", 1),
		"." + good, good[:8], strings.Repeat("0", 8) + "." + strings.Repeat("g", 32)} {
		if id, _, err := auth.ParseToken(text); !errors.Is(err, auth.ErrTokenInvalid) {
			t.Errorf("%q: %q, %v", text, id, err)
		}
	}
}

// FuzzJoinToken looks for rows and texts that are taken although no token writes them.
func FuzzJoinToken(f *testing.F) {
	token, text := auth.NewToken(func(b []byte) { b[0] = 1 })
	token.Expires, token.Uses, token.Owner = 9, 2, "o"
	next, rows, err := auth.New().Next(&auth.Change{Kind: auth.JoinTokenAdd, Token: &token})
	if err != nil || len(next.JoinTokens(0)) != 1 {
		f.Fatal(err)
	}
	f.Add(rows[0].Value, text)
	f.Fuzz(func(t *testing.T, row []byte, text string) {
		s := auth.New()
		if s.Load(rows[0].Key, row) == nil {
			again := auth.New()
			for _, r := range auth.Rows(s) {
				if r.Key[0] == 't' && again.Load(r.Key, r.Value) != nil {
					t.Errorf("%x was loaded, and is not when it is written again", row)
				}
			}
			if s.Bytes() != again.Bytes() && len(s.JoinTokens(0)) > 0 {
				t.Errorf("%x counts %d bytes, then %d", row, s.Bytes(), again.Bytes())
			}
		}
		if id, _, err := auth.ParseToken(text); err == nil && len(id) != 8 {
			t.Errorf("%q has id %q", text, id)
		}
	})
}
