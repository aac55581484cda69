package login

import (
	"context"
	"crypto/rand"
	"fmt"
	"runtime"

	"golang.org/x/crypto/bcrypt"
)

// maxHostLogins bounds how many logins of one host hash or wait, so that no host keeps the others from logging in.
const maxHostLogins = maxWaiting / 4

// maxPasswordBytes is all that bcrypt looks at.
const maxPasswordBytes = 72

// Stats is the load of a Login.
type Stats struct {
	Hashing int    // passwords that are being hashed
	Waiting int    // those that wait for it
	Refused uint64 // by ErrBusy, ever
	Used    int    // simple tokens whose last use is remembered
}

// passwords hashes and compares passwords, a few at a time: hashing is slow on purpose, and any client that may connect may
// ask for it.
type passwords struct {
	cost    int
	logins  *line  // any client that may connect is in it
	changes *line  // of passwords, which logins must not hold up
	nobody  []byte // compared with where there is no hash

	generate func(password []byte, cost int) ([]byte, error) // bcrypt's
	same     func(hash, password []byte) error               // bcrypt's
}

// newPasswords leaves a processor to all else, and to changes, if there is more than one.
func newPasswords(cost int) *passwords {
	slots := max(runtime.GOMAXPROCS(0)-1, 1)
	return &passwords{
		cost: cost, nobody: nobodyHash(cost), logins: newLine(slots, maxHostLogins), changes: newLine(1, 1+maxWaiting),
		generate: bcrypt.GenerateFromPassword, same: bcrypt.CompareHashAndPassword,
	}
}

// nobodyHash returns a hash of nothing that is known. It is written rather than computed, which would take as long as a login.
func nobodyHash(cost int) []byte {
	const salt, digest = 22, 31
	const letters = "./ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
	text := make([]byte, salt+digest)
	_, _ = rand.Read(text) // never fails
	for i := range text {
		text[i] = letters[int(text[i])%len(letters)]
	}
	return fmt.Appendf(nil, "$2a$%02d$%s", cost, text)
}

func (p *passwords) hash(ctx context.Context, password string) (hash []byte, err error) {
	if len(password) > maxPasswordBytes {
		return nil, ErrPasswordTooLong
	}
	leave, err := p.changes.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	return p.generate([]byte(password), p.cost)
}

// compare reports whether the password is that of the hash. Without a hash none is, which takes as long to find out.
func (p *passwords) compare(ctx context.Context, hash []byte, password string) (bool, error) {
	if _, err := bcrypt.Cost(hash); err != nil {
		hash = p.nobody
	}
	leave, err := p.logins.enter(ctx)
	if err != nil {
		return false, err
	}
	defer leave()
	same := p.same(hash, []byte(password)) == nil
	return same && &hash[0] != &p.nobody[0], nil
}

func (p *passwords) stats() Stats {
	hashing, waits, refused := p.logins.counts()
	more, wait, never := p.changes.counts()
	return Stats{Hashing: hashing + more, Waiting: waits + wait, Refused: refused + never}
}
