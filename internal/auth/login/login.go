package login

import (
	"context"
	"log/slog"
	"time"

	"golang.org/x/crypto/bcrypt"

	"github.com/quorate/quorate/internal/auth"
	"github.com/quorate/quorate/internal/base/env"
)

// DefaultTTL is etcd's, of tokens of both kinds.
const DefaultTTL = 5 * time.Minute

// maxTokenBytes bounds what is looked at before a signature was checked.
const maxTokenBytes = 8 << 10

// Options are the settings of a Login.
type Options struct {
	JWT        *JWT          // nil: simple tokens
	TTL        time.Duration // of simple tokens; 0: DefaultTTL
	UseBytes   int64         // of what is remembered of the use of simple tokens; 0: 8 MiB, which is the most
	BcryptCost int           // of new hashes; 0: bcrypt's default
	Clock      env.Clock
	Logger     *slog.Logger // says when keys of a JWT were read again
	// Same compares a hash with a password; nil: bcrypt does. The simulator has nothing to protect, and no time for that.
	Same func(hash, password []byte) error
}

// Login checks passwords and tokens.
type Login struct {
	passwords *passwords
	tokens    tokens
}

// tokens is one kind of tokens.
type tokens interface {
	issue(*auth.State, *auth.User) (string, error)
	// check reports whether the token is good, and whose it is.
	check(*auth.State, string) (auth.Credentials, bool)
	again(*auth.State, string) func() bool // see Login.Again
	quick() bool                           // check takes microseconds, and reads no file
}

// New returns a Login. It fails if the files of keys cannot be used.
func New(o Options) (*Login, error) {
	if o.TTL <= 0 {
		o.TTL = DefaultTTL
	}
	if o.BcryptCost == 0 {
		o.BcryptCost = bcrypt.DefaultCost
	}
	l := &Login{passwords: newPasswords(o.BcryptCost)}
	if o.Same != nil {
		l.passwords.same = o.Same
	}
	if o.JWT == nil {
		l.tokens = newSimple(o.TTL, o.UseBytes, o.Clock)
		return l, nil
	}
	settings := *o.JWT
	if settings.TTL <= 0 {
		settings.TTL = DefaultTTL
	}
	signed, err := newJWTs(&settings, o.Clock, o.Logger)
	if err != nil {
		return nil, err
	}
	l.tokens = signed
	return l, nil
}

// Hash returns the bcrypt hash of a password, for a Change. It may wait. The error is ErrPasswordTooLong, ErrBusy, or the
// context's.
func (l *Login) Hash(ctx context.Context, password string) ([]byte, error) {
	return l.passwords.hash(ctx, password)
}

// Login checks a password and returns a token for its user. It may wait. The error is ErrNotEnabled, ErrFailed, ErrBusy,
// ErrVerifyOnly, ErrNameTooLong, ErrNoSecret, or the context's.
//
// If the password changes meanwhile, the token is void from the start: it names the revision of the password that was checked.
func (l *Login) Login(ctx context.Context, state *auth.State, user, password string) (token string, err error) {
	if !state.Enabled() {
		return "", ErrNotEnabled
	}
	u, known := state.User(user)
	var hash []byte
	if known && !u.NoPassword {
		hash = u.Hash
	}
	right, err := l.passwords.compare(ctx, hash, password)
	switch {
	case err != nil:
		return "", err
	case !right:
		return "", ErrFailed
	}
	token, err = l.tokens.issue(state, u)
	if err == nil && len(token) > maxTokenBytes {
		return "", ErrNameTooLong
	}
	return token, err
}

// Authenticate returns whose token it is. The error is ErrInvalidToken. While authentication is not enabled, no caller needs a
// token, and none is looked at.
//
// The user of a JWT need not exist, and its revision may be higher than the State's: etcd takes both, and the State of this
// member may be older than that of the member which issued it. Package auth refuses users that it does not know.
func (l *Login) Authenticate(state *auth.State, token string) (auth.Credentials, error) {
	if !state.Enabled() {
		return auth.Credentials{}, nil
	}
	if len(token) > maxTokenBytes {
		return auth.Credentials{}, ErrInvalidToken
	}
	by, ok := l.tokens.check(state, token)
	if !ok || by.User == "" {
		return auth.Credentials{}, ErrInvalidToken
	}
	return by, nil
}

// Again returns a function that does for a token what Authenticate does, as long as the State is the one by which the token was
// found good: it reports whether the token is good still, and counts that as a use. If it reports false, or Again returns nil,
// Authenticate must be asked.
func (l *Login) Again(state *auth.State, token string) func() bool {
	return l.tokens.again(state, token)
}

// Quick reports whether Authenticate takes microseconds and reads no file: of tokens that no key from a file signs.
func (l *Login) Quick() bool { return l.tokens.quick() }

// Stats returns the load at this moment.
func (l *Login) Stats() Stats {
	s := l.passwords.stats()
	if simple, ok := l.tokens.(*simple); ok {
		s.Used = simple.uses.len()
	}
	return s
}
