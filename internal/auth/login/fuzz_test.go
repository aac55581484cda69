package login_test

import (
	"bytes"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/quorate/quorate/internal/auth"
	"github.com/quorate/quorate/internal/auth/login"
)

// FuzzLogin_Authenticate tries texts as tokens of both kinds. Only what was issued is good, which is alice's, and it is so in one
// text only. (Workers get the seeds from another process: what that one issued is good too.)
func FuzzLogin_Authenticate(f *testing.F) {
	clock, s := newClock(), newState(f)
	private := filepath.Join(f.TempDir(), "hmac")
	write(f, private, bytes.Repeat([]byte("k"), 32))
	simple := open(f, login.Options{Clock: clock})
	signed := open(f, login.Options{Clock: clock, JWT: &login.JWT{SignMethod: "HS256", PrivateKeyFile: private}})
	for _, l := range []*login.Login{simple, signed} {
		token := tokenOf(f, l, s)
		f.Add(token)
		f.Add(token + "=")
		f.Add(token[1:])
		f.Add(strings.ToLower(token))
	}
	f.Add("")
	f.Add("..")
	f.Add("eyJhbGciOiJub25lIn0.e30.")
	f.Fuzz(func(t *testing.T, text string) {
		for _, l := range []*login.Login{simple, signed} {
			by, err := l.Authenticate(s, text)
			switch {
			case err == nil && !alices(s, by):
				t.Errorf("%q is good, for %+v", text, by)
			case err == nil:
				wantInvalid(t, l, s, text[1:])
				wantInvalid(t, l, s, text[:len(text)-1])
				wantInvalid(t, l, s, text+"\n")
			case err != nil && (!errors.Is(err, login.ErrInvalidToken) || by != auth.Credentials{}):
				t.Errorf("%q: got %+v, %v", text, by, err)
			}
		}
	})
}
