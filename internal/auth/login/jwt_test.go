package login_test

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/quorate/quorate/internal/auth"
	"github.com/quorate/quorate/internal/auth/login"
	"github.com/quorate/quorate/internal/config"
)

// Keys are slow to make.
var (
	rsaKey   = sync.OnceValue(func() crypto.Signer { return must(rsa.GenerateKey(rand.Reader, 2048)) })
	p256Key  = sync.OnceValue(func() crypto.Signer { return must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader)) })
	p256Next = sync.OnceValue(func() crypto.Signer { return must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader)) })
	p384Key  = sync.OnceValue(func() crypto.Signer { return must(ecdsa.GenerateKey(elliptic.P384(), rand.Reader)) })
	p521Key  = sync.OnceValue(func() crypto.Signer { return must(ecdsa.GenerateKey(elliptic.P521(), rand.Reader)) })
	edKey    = sync.OnceValue(func() crypto.Signer {
		_, key, err := ed25519.GenerateKey(rand.Reader)
		return must(key, err)
	})
)

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func write(t testing.TB, path string, raw []byte) {
	t.Helper()
	if err := os.WriteFile(path, raw, 0o600); err != nil {
		t.Fatal(err)
	}
}

// pemFiles writes a key and its public half, and returns their paths.
func pemFiles(t testing.TB, dir string, key crypto.Signer) (public, private string) {
	t.Helper()
	public, private = filepath.Join(dir, "pub.pem"), filepath.Join(dir, "priv.pem")
	raw := must(x509.MarshalPKIXPublicKey(key.Public()))
	write(t, public, pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: raw}))
	raw = must(x509.MarshalPKCS8PrivateKey(key))
	write(t, private, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: raw}))
	return public, private
}

func openJWT(t testing.TB, method string, key crypto.Signer, clock *hand) *login.Login {
	t.Helper()
	public, private := pemFiles(t, t.TempDir(), key)
	return open(t, login.Options{Clock: clock, Logger: slog.New(slog.DiscardHandler),
		JWT: &login.JWT{SignMethod: method, PublicKeyFile: public, PrivateKeyFile: private}})
}

func signed(method string, claims jwt.MapClaims, key any) string {
	return must(jwt.NewWithClaims(jwt.GetSigningMethod(method), claims).SignedString(key))
}

func claimsAt(clock *hand) jwt.MapClaims {
	return jwt.MapClaims{"username": "alice", "revision": 6, "exp": clock.now.Add(time.Minute).Unix()}
}

func TestLogin_Login_jwt(t *testing.T) {
	for _, row := range []struct {
		key     func() crypto.Signer
		methods []string
	}{
		{rsaKey, []string{"RS256", "RS384", "RS512", "PS256", "PS384", "PS512"}},
		{p256Key, []string{"ES256"}}, {p384Key, []string{"ES384"}}, {p521Key, []string{"ES512"}}, {edKey, []string{"EdDSA"}},
	} {
		for _, method := range row.methods {
			clock, s := newClock(), newState(t)
			l := openJWT(t, method, row.key(), clock)
			token := tokenOf(t, l, s)
			wantUser(t, l, s, token)
			wantUser(t, openJWT(t, method, row.key(), clock), s, token) // another member
			var claims jwt.MapClaims
			if _, _, err := jwt.NewParser().ParseUnverified(token, &claims); err != nil {
				t.Fatal(err)
			}
			if len(claims) != 3 || claims["username"] != "alice" || claims["revision"] != float64(s.Revision()) ||
				claims["exp"] != float64(clock.now.Add(login.DefaultTTL).Unix()) {
				t.Errorf("%s: got claims %v, want etcd's", method, claims)
			}
			clock.turn(login.DefaultTTL + time.Second)
			wantInvalid(t, l, s, token)
		}
	}
}

func TestLogin_Login_jwtHMAC(t *testing.T) {
	key := bytes.Repeat([]byte("k"), 64)
	private := filepath.Join(t.TempDir(), "hmac")
	write(t, private, key)
	for _, method := range []string{"HS256", "HS384", "HS512"} {
		clock, s := newClock(), newState(t)
		l := open(t, login.Options{Clock: clock, JWT: &login.JWT{SignMethod: method, PrivateKeyFile: private, TTL: time.Second}})
		token := tokenOf(t, l, s)
		wantUser(t, l, s, token)
		if by, err := l.Authenticate(s, signed(method, claimsAt(clock), key)); err != nil || by.Revision != 6 {
			t.Errorf("%s: a token that somebody else signed: got %+v, %v", method, by, err)
		}
		clock.turn(2 * time.Second)
		wantInvalid(t, l, s, token)
	}
}

func TestLogin_Login_verifyOnly(t *testing.T) {
	clock, s := newClock(), newState(t)
	public, _ := pemFiles(t, t.TempDir(), p256Key())
	l := open(t, login.Options{Clock: clock, JWT: &login.JWT{SignMethod: "ES256", PublicKeyFile: public}})
	if _, err := l.Login(t.Context(), s, "alice", "guess"); !errors.Is(err, login.ErrFailed) {
		t.Errorf("a wrong password: got %v, want %v", err, login.ErrFailed)
	}
	if _, err := l.Login(t.Context(), s, "alice", "sesame"); !errors.Is(err, login.ErrVerifyOnly) {
		t.Errorf("got %v, want %v", err, login.ErrVerifyOnly)
	}
	if _, err := l.Authenticate(s, signed("ES256", claimsAt(clock), p256Key())); err != nil {
		t.Error(err)
	}
}

// Ensure that only what the configured method and key have signed is believed, and only if it says who and until when.
func TestLogin_Authenticate_jwt(t *testing.T) {
	clock, s := newClock(), newState(t)
	l := openJWT(t, "ES256", p256Key(), clock)
	publicDER := must(x509.MarshalPKIXPublicKey(p256Key().Public()))
	publicPEM := pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: publicDER})
	with := func(change func(jwt.MapClaims)) string {
		claims := claimsAt(clock)
		change(claims)
		return signed("ES256", claims, p256Key())
	}
	claim := func(name string, value any) string { return with(func(c jwt.MapClaims) { c[name] = value }) }
	without := func(name string) string { return with(func(c jwt.MapClaims) { delete(c, name) }) }
	good := claim("extra", "x")
	parts := strings.Split(good, ".")
	header := func(text string) string { return base64.RawURLEncoding.EncodeToString([]byte(text)) }

	for _, row := range []struct{ name, token string }{
		{"of another key", signed("ES256", claimsAt(clock), p256Next())},
		{"of another method", signed("ES384", claimsAt(clock), p384Key())},
		{"of another kind of key", signed("EdDSA", claimsAt(clock), edKey())},
		{"of the public key as a secret", signed("HS256", claimsAt(clock), publicPEM)},
		{"of the public key's bytes as a secret", signed("HS256", claimsAt(clock), publicDER)},
		{"of nobody", signed("none", claimsAt(clock), jwt.UnsafeAllowNoneSignatureType)},
		{"with the method taken off", header(`{"alg":"none"}`) + "." + parts[1] + "."},
		{"with the method taken off, and signed", header(`{"alg":"none"}`) + "." + parts[1] + "." + parts[2]},
		{"with an unknown method", header(`{"alg":"XX"}`) + "." + parts[1] + "." + parts[2]},
		{"without a method", header(`{}`) + "." + parts[1] + "." + parts[2]},
		{"with a method that is no text", header(`{"alg":[1]}`) + "." + parts[1] + "." + parts[2]},
		{"without its signature", parts[0] + "." + parts[1] + "."},
		{"with other claims", parts[0] + "." + header(`{"username":"root","revision":6,"exp":9999999999}`) + "." + parts[2]},
		{"expired", claim("exp", clock.now.Add(-time.Second).Unix())},
		{"without expiry", without("exp")},
		{"with an expiry that is no number", claim("exp", "tomorrow")},
		{"not yet in force", claim("nbf", clock.now.Add(time.Hour).Unix())},
		{"without a user", without("username")},
		{"with an empty user", claim("username", "")},
		{"with a user that is no text", claim("username", []string{"root"})},
		{"without a revision", without("revision")},
		{"with a revision that is no number", claim("revision", "6")},
		{"with a negative revision", claim("revision", -1)},
		{"with half a revision", claim("revision", 6.5)},
		{"with an endless revision", claim("revision", 1e300)},
		{"too long", claim("extra", strings.Repeat("x", login.MaxTokenBytes))},
		{"empty", ""}, {"two dots", ".."}, {"words", "a.b.c"}, {"a simple token", tokenOf(t, open(t, login.Options{}), s)},
		{"with more behind it", good + "."}, {"with a blank", good + " "}, {"with a line", good + "\n"},
	} {
		t.Run(row.name, func(t *testing.T) { wantInvalid(t, l, s, row.token) })
	}
	for name, row := range map[string]struct {
		token string
		want  auth.Credentials
	}{
		"good":                     {good, auth.Credentials{User: "alice", Revision: 6}},
		"a revision yet to come":   {claim("revision", 1000), auth.Credentials{User: "alice", Revision: 1000}},
		"a user that is not known": {claim("username", "zoe"), auth.Credentials{User: "zoe", Revision: 6}},
	} {
		if by, err := l.Authenticate(s, row.token); err != nil || by != row.want {
			t.Errorf("%s: got %+v, %v, want %+v", name, by, err, row.want)
		}
	}
}

// Ensure that no user gets a token that is too long to be looked at: JSON takes six bytes for one that does not print.
func TestLogin_Login_longName(t *testing.T) {
	simple, signed, s := open(t, login.Options{}), openJWT(t, "ES256", p256Key(), newClock()), newState(t)
	name := strings.Repeat("\x00", 1<<10)
	s = apply(t, s, auth.Change{Kind: auth.UserAdd, User: name, Hash: hashOf("x")})
	if token, err := signed.Login(t.Context(), s, name, "x"); !errors.Is(err, login.ErrNameTooLong) || token != "" {
		t.Errorf("got %q, %v, want %v", token, err, login.ErrNameTooLong)
	}
	if _, err := simple.Login(t.Context(), s, name, "x"); err != nil {
		t.Errorf("a simple token: got %v", err)
	}
}

// Ensure that the right key is not enough: the method must be the configured one, too.
func TestLogin_Authenticate_jwtOtherMethod(t *testing.T) {
	clock, s := newClock(), newState(t)
	key := bytes.Repeat([]byte("k"), 64)
	private := filepath.Join(t.TempDir(), "hmac")
	write(t, private, key)
	hmac := open(t, login.Options{Clock: clock, JWT: &login.JWT{SignMethod: "HS256", PrivateKeyFile: private}})
	for _, method := range []string{"HS384", "HS512"} {
		wantInvalid(t, hmac, s, signed(method, claimsAt(clock), key))
	}
	l := openJWT(t, "RS256", rsaKey(), clock)
	for _, method := range []string{"RS384", "RS512", "PS256", "PS512"} {
		wantInvalid(t, l, s, signed(method, claimsAt(clock), rsaKey()))
	}
}

// Ensure that a JWT from before the user got its password is refused by what checks requests.
func TestLogin_Authenticate_jwtOfOldPassword(t *testing.T) {
	l, s := openJWT(t, "ES256", p256Key(), newClock()), newState(t)
	token := tokenOf(t, l, s)
	s = apply(t, s, auth.Change{Kind: auth.UserPassword, User: "alice", Hash: hashOf("simsalabim")})
	by, err := l.Authenticate(s, token)
	if err != nil {
		t.Fatal(err)
	}
	check := s.Check(by)
	if err := check.User(); !errors.Is(err, auth.ErrOldRevision) {
		t.Errorf("got %v, want %v", err, auth.ErrOldRevision)
	}
}

func TestNew_keys(t *testing.T) {
	dir, other := t.TempDir(), t.TempDir()
	public, private := pemFiles(t, dir, p256Key())
	otherPublic, _ := pemFiles(t, other, p256Next())
	edPublic, edPrivate := pemFiles(t, t.TempDir(), edKey())
	broken := filepath.Join(dir, "broken.pem")
	write(t, broken, []byte("secret sauce"))
	empty := filepath.Join(dir, "empty.pem")
	write(t, empty, nil)
	for _, row := range []struct {
		name                    string
		method, public, private string
		want                    string // empty: good
	}{
		{"both", "ES256", public, private, ""},
		{"a private key alone", "ES256", "", private, ""},
		{"a public key alone", "ES256", public, "", ""},
		{"no key", "ES256", "", "", "neither"},
		{"keys that do not belong together", "ES256", otherPublic, private, "not that of the private key"},
		{"a method that nobody knows", "XX", public, private, "sign-method"},
		{"the method none", "none", public, private, "sign-method"},
		{"no method", "", public, private, "sign-method"},
		{"a curve of another size", "ES384", public, "", "not one of the sign-method"},
		{"a curve of another size, private", "ES384", "", private, "not one of the sign-method"},
		{"a key of another kind", "ES256", edPublic, "", "pub-key"},
		{"a private key of another kind", "RS256", "", edPrivate, "priv-key"},
		{"no file", "ES256", filepath.Join(dir, "none.pem"), "", "no such file"},
		{"a file that is no key", "ES256", broken, "", "pub-key"},
		{"a private file that is no key", "EdDSA", "", broken, "priv-key"},
		{"an empty file", "ES256", "", empty, "neither"},
		{"a public key for HMAC", "HS256", public, "", "priv-key"},
		{"an empty file for HMAC", "HS256", "", empty, "priv-key"},
	} {
		t.Run(row.name, func(t *testing.T) {
			_, err := login.New(login.Options{Clock: newClock(),
				JWT: &login.JWT{SignMethod: row.method, PublicKeyFile: row.public, PrivateKeyFile: row.private}})
			switch {
			case row.want == "" && err != nil:
				t.Error(err)
			case row.want != "" && (err == nil || !strings.Contains(err.Error(), row.want)):
				t.Errorf("got %v, want %q in it", err, row.want)
			case err != nil && strings.Contains(err.Error(), "sauce"):
				t.Errorf("the error shows what is in the file: %v", err)
			}
		})
	}
}

// Ensure that changed keys are read again, and that files which cannot be used change nothing.
func TestLogin_changedKeys(t *testing.T) {
	clock, s, dir := newClock(), newState(t), t.TempDir()
	public, private := pemFiles(t, dir, p256Key())
	var lines bytes.Buffer
	l := open(t, login.Options{Clock: clock, Logger: slog.New(slog.NewTextHandler(&lines, nil)),
		JWT: &login.JWT{SignMethod: "ES256", PublicKeyFile: public, PrivateKeyFile: private}})
	before := tokenOf(t, l, s)

	write(t, public, []byte("secret sauce"))
	clock.turn(time.Second)
	wantUser(t, l, s, before)
	if got := lines.String(); strings.Count(got, "\n") != 1 || !strings.Contains(got, "stay in force") {
		t.Errorf("the log says %q", got)
	}
	clock.turn(time.Second)
	wantUser(t, l, s, before) // and it is not said again

	pemFiles(t, dir, p256Next())
	wantUser(t, l, s, before) // not looked at within a second
	clock.turn(time.Second)
	wantInvalid(t, l, s, before)
	wantUser(t, l, s, tokenOf(t, l, s))

	if err := os.Remove(private); err != nil {
		t.Fatal(err)
	}
	clock.turn(time.Second)
	wantUser(t, l, s, tokenOf(t, l, s)) // still signs
	if got := lines.String(); strings.Count(got, "\n") != 3 || strings.Contains(got, "sauce") || strings.Contains(got, before) {
		t.Errorf("the log says %q", got)
	}
}

// Ensure that every method that the flag takes is one that tokens can have, and the other way round.
func TestNew_methodsOfTheFlag(t *testing.T) {
	for _, method := range login.Methods() {
		c := config.Default()
		c.Auth.Token = "jwt,priv-key=f,sign-method=" + method
		if _, err := c.JWT(); err != nil {
			t.Errorf("%s: %v", method, err)
		}
	}
	c := config.Default()
	c.Auth.Token = "jwt,priv-key=f,sign-method=?"
	_, err := c.JWT()
	if _, all, _ := strings.Cut(err.Error(), "one of "); strings.Count(all, ",")+1 != len(login.Methods()) {
		t.Errorf("the flag takes %s, tokens have %v", all, login.Methods())
	}
}
