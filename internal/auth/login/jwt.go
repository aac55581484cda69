package login

import (
	"errors"
	"log/slog"
	"math"
	"strings"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/quorate/quorate/internal/auth"
	"github.com/quorate/quorate/internal/base/env"
	"github.com/quorate/quorate/internal/base/reload"
)

// JWT says how JSON web tokens are signed, as --auth-token does.
type JWT struct {
	SignMethod string // RS256 and so on: see methods
	// PublicKeyFile and PrivateKeyFile are in PEM form, but a private key of HS is the file as it is. Without a private key
	// tokens are checked, and another program issues them.
	PublicKeyFile, PrivateKeyFile string
	TTL                           time.Duration // 0: DefaultTTL
}

// jwts is tokens that are signed with a key from a file.
type jwts struct {
	ttl    time.Duration
	clock  env.Clock
	method jwt.SigningMethod
	keys   *reload.Source[pair]
	parser *jwt.Parser
}

func newJWTs(o *JWT, clock env.Clock, logger *slog.Logger) (*jwts, error) {
	method, known := methods[o.SignMethod]
	if !known {
		return nil, errors.New("unknown sign-method")
	}
	keys, err := openKeys(method, o.PublicKeyFile, o.PrivateKeyFile, clock, logger)
	if err != nil {
		return nil, err
	}
	return &jwts{ttl: o.TTL, clock: clock, method: method, keys: keys, parser: jwt.NewParser(
		jwt.WithValidMethods([]string{method.Alg()}), // no other one, whatever the token says
		jwt.WithExpirationRequired(), jwt.WithTimeFunc(clock.Now), jwt.WithStrictDecoding(),
	)}, nil
}

func (*jwts) again(*auth.State, string) func() bool { return nil }

func (j *jwts) issue(state *auth.State, u *auth.User) (string, error) {
	key := j.keys.Get().sign
	if key == nil {
		return "", ErrVerifyOnly
	}
	return jwt.NewWithClaims(j.method, jwt.MapClaims{
		"username": u.Name, "revision": state.Revision(), "exp": j.clock.Now().Add(j.ttl).Unix(),
	}).SignedString(key)
}

func (*jwts) quick() bool { return false }

func (j *jwts) check(_ *auth.State, token string) (auth.Credentials, bool) {
	if strings.ContainsAny(token, "\r\n") { // Go's base64 skips them: one token would have many texts
		return auth.Credentials{}, false
	}
	claims := jwt.MapClaims{}
	_, err := j.parser.ParseWithClaims(token, claims, func(*jwt.Token) (any, error) { return j.keys.Get().verify, nil })
	if err != nil {
		return auth.Credentials{}, false
	}
	user, named := claims["username"].(string)
	revision, dated := claims["revision"].(float64)
	// Beyond 2^53 a float is not exact, and beyond 2^64 its conversion is undefined.
	if !named || !dated || revision < 0 || revision > 1<<53 || revision != math.Trunc(revision) {
		return auth.Credentials{}, false
	}
	return auth.Credentials{User: user, Revision: uint64(revision)}, true
}
