package login

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"time"

	"github.com/quorate/quorate/internal/auth"
	"github.com/quorate/quorate/internal/base/env"
)

// A simple token is the base64url text, without padding, of
//
//	version  1 byte   1
//	issued   8 bytes  milliseconds since 1970, big-endian, by the clock of the member that issued it
//	id      16 bytes  random
//	since    uvarint  User.Since of the password that was checked
//	user     the rest
//	mac     32 bytes  HMAC-SHA256 of macDomain and all of the above, keyed with State.Secret
const (
	simpleVersion = 1
	fixedBytes    = 1 + 8 + len(tokenID{})
	macDomain     = "quorate simple token\x00"
)

const (
	secretBytes    = 32 // of a new secret
	minSecretBytes = 16 // less signs nothing: a client that guesses it is root
)

// NewSecret returns a secret for a Change that enables authentication.
func NewSecret() []byte {
	secret := make([]byte, secretBytes)
	_, _ = rand.Read(secret) // never fails
	return secret
}

// claim is what a simple token says.
type claim struct {
	issued time.Time
	id     tokenID
	since  uint64
	user   string
}

// simple is the kind of tokens that need no setting.
type simple struct {
	ttl   time.Duration
	clock env.Clock
	uses  *uses
}

func newSimple(ttl time.Duration, useBytes int64, clock env.Clock) *simple {
	return &simple{ttl: ttl, clock: clock, uses: newUses(ttl, useBytes, clock.Now())}
}

func (s *simple) issue(state *auth.State, u *auth.User) (string, error) {
	secret := state.Secret()
	if len(secret) < minSecretBytes {
		return "", ErrNoSecret
	}
	c := claim{issued: s.clock.Now(), since: u.Since, user: u.Name}
	_, _ = rand.Read(c.id[:]) // never fails
	return c.sign(secret), nil
}

func (s *simple) check(state *auth.State, token string) (auth.Credentials, bool) {
	now := s.clock.Now()
	if one := s.uses.find(state.Secret(), token, now); one != nil && isOf(state, one.by) && s.uses.again(one, now) {
		return one.by, true
	}
	c, signed := readClaim(state.Secret(), token)
	by := auth.Credentials{User: c.user, Revision: c.since}
	if !signed || !isOf(state, by) {
		return auth.Credentials{}, false
	}
	return by, s.uses.first(state.Secret(), token, by, c.issued, now)
}

// isOf reports whether credentials are those of a user with its present password.
func isOf(state *auth.State, by auth.Credentials) bool {
	u, ok := state.User(by.User)
	return ok && u.Since == by.Revision
}

func (s *simple) again(state *auth.State, token string) func() bool {
	one := s.uses.find(state.Secret(), token, s.clock.Now())
	if one == nil {
		return nil
	}
	return func() bool { return s.uses.again(one, s.clock.Now()) }
}

func (*simple) quick() bool { return true }

func (c *claim) sign(secret []byte) string {
	raw := make([]byte, 1, fixedBytes+binary.MaxVarintLen64+len(c.user)+sha256.Size)
	raw[0] = simpleVersion
	raw = binary.BigEndian.AppendUint64(raw, uint64(c.issued.UnixMilli()))
	raw = append(raw, c.id[:]...)
	raw = binary.AppendUvarint(raw, c.since)
	raw = append(raw, c.user...)
	return base64.RawURLEncoding.EncodeToString(append(raw, mac(secret, raw)...))
}

// readClaim returns what a token says if it is signed with the secret, and written as sign writes it.
func readClaim(secret []byte, token string) (c claim, ok bool) {
	raw, err := base64.RawURLEncoding.DecodeString(token)
	if err != nil || len(raw) < fixedBytes+sha256.Size || len(secret) < minSecretBytes {
		return claim{}, false
	}
	signed, sum := raw[:len(raw)-sha256.Size], raw[len(raw)-sha256.Size:]
	if !hmac.Equal(sum, mac(secret, signed)) || signed[0] != simpleVersion {
		return claim{}, false
	}
	c.issued = time.UnixMilli(int64(binary.BigEndian.Uint64(signed[1:])))
	copy(c.id[:], signed[9:])
	since, n := binary.Uvarint(signed[fixedBytes:])
	if n <= 0 {
		return claim{}, false
	}
	c.since, c.user = since, string(signed[fixedBytes+n:])
	return c, c.sign(secret) == token
}

func mac(secret, raw []byte) []byte {
	h := hmac.New(sha256.New, secret)
	h.Write([]byte(macDomain))
	h.Write(raw)
	return h.Sum(nil)
}
