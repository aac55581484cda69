package login

import (
	"maps"
	"slices"
	"time"

	"github.com/quorate/quorate/internal/auth"
)

// The bounds, for tests.
const (
	MaxUseBytes   = maxUseBytes
	MaxWaiting    = maxWaiting
	MaxHostLogins = maxHostLogins
	MaxTokenBytes = maxTokenBytes
)

// Compare puts something in the place of bcrypt's comparison.
func Compare(l *Login, same func(hash, password []byte) error) { l.passwords.same = same }

// Generate puts something in the place of bcrypt's hashing.
func Generate(l *Login, generate func(password []byte, cost int) ([]byte, error)) {
	l.passwords.generate = generate
}

// UseBytes is what is remembered of a token of a user takes.
func UseBytes(token, user string) int64 {
	one := use{token: token, by: auth.Credentials{User: user}}
	return one.size()
}

// Slots is how many passwords are compared at once.
func Slots(l *Login) int { return l.passwords.logins.slots }

// Methods are the names of all ways to sign a JWT.
func Methods() []string { return slices.Sorted(maps.Keys(methods)) }

// Forge returns a simple token as a process that has the secret could make it.
func Forge(secret []byte, u *auth.User, issued time.Time) string {
	return (&claim{issued: issued, since: u.Since, user: u.Name}).sign(secret)
}
