package seal

import (
	"bytes"
	"crypto/fips140"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"

	"filippo.io/age"

	"github.com/quorate/quorate/internal/backup"
)

// Bounds of a set of recipients.
const (
	MaxRecipients     = 16
	MaxRecipientBytes = 8 << 10 // of all, as Recipients.String writes them
)

// ErrFIPS means that this process may use no cryptography but that of FIPS 140-3, and age's is other.
var ErrFIPS = errors.New("this process runs with GODEBUG=fips140=only, and recipients need X25519 and ChaCha20-Poly1305, " +
	"which FIPS 140-3 does not have: let the place encrypt what it holds, or encrypt its disk")

// Recipients are a set of recipients: each once, sorted.
type Recipients struct {
	words  []string
	parsed []age.Recipient
}

// Len is their number.
func (r *Recipients) Len() int { return len(r.words) }

// String writes them with a space between two of them.
func (r *Recipients) String() string { return strings.Join(r.words, " ") }

// Words returns the text of each.
func (r *Recipients) Words() []string { return slices.Clone(r.words) }

// ParseRecipients reads recipients. The error says which one is none, and does not repeat it.
func ParseRecipients(words []string) (*Recipients, error) {
	r := &Recipients{}
	for i, word := range words {
		if err := r.add(strings.TrimSpace(word)); err != nil {
			return nil, fmt.Errorf("recipient %d of %d: %w", i+1, len(words), err)
		}
	}
	slices.Sort(r.words)
	r.words = slices.Compact(r.words)
	r.parsed = nil
	for _, word := range r.words {
		one, err := parse(word)
		if err != nil {
			return nil, err
		}
		r.parsed = append(r.parsed, one)
	}
	switch {
	case len(r.words) == 0:
		return nil, errors.New("there is no recipient: age-keygen makes one")
	case len(r.words) > MaxRecipients || len(r.String()) > MaxRecipientBytes:
		return nil, fmt.Errorf("%d recipients of %d bytes: at most %d, of %d bytes together, are taken", len(r.words),
			len(r.String()), MaxRecipients, MaxRecipientBytes)
	}
	if fips140.Enforced() {
		return nil, ErrFIPS
	}
	if _, err := r.seal(nil); err != nil { // recipients of two kinds, or one that encrypts nothing
		return nil, fmt.Errorf("nothing can be encrypted to these recipients: %w", err)
	}
	return r, nil
}

func (r *Recipients) add(word string) error {
	if _, err := parse(word); err != nil {
		return err
	}
	r.words = append(r.words, strings.ToLower(word))
	return nil
}

var (
	errIdentity = errors.New("this is the secret key: it belongs to who restores, and must not be given to the cluster. Give " +
		"its public half, which begins with age1 (age-keygen -y FILE prints it). The secret key was neither sent nor stored; " +
		"if others can read this command line, make another one")
	errRecipient = errors.New("it is none: write the public key that age-keygen prints, which begins with age1")
	errSSH       = errors.New("keys of SSH are not taken: make a key pair with age-keygen")
)

// parse reads one recipient. Errors of the library repeat what they were given, which may be a secret.
func parse(word string) (age.Recipient, error) {
	lower := strings.ToLower(word)
	switch {
	case strings.Contains(lower, "secret-key"):
		return nil, errIdentity
	case strings.HasPrefix(lower, "ssh-"):
		return nil, errSSH
	case strings.HasPrefix(lower, "age1pq1"):
		if r, err := age.ParseHybridRecipient(lower); err == nil {
			return r, nil
		}
	case strings.HasPrefix(lower, "age1"):
		if r, err := age.ParseX25519Recipient(lower); err == nil {
			return r, nil
		}
	}
	return nil, errRecipient
}

// ReadRecipients reads the words of a file of recipients, one a line; empty lines and those that begin with # are skipped.
func ReadRecipients(content string) (words []string) {
	for line := range strings.SplitSeq(content, "\n") {
		if line = strings.TrimSpace(line); line != "" && line[0] != '#' {
			words = append(words, line)
		}
	}
	return words
}

func (r *Recipients) seal(content []byte) ([]byte, error) {
	var sealed bytes.Buffer
	w, err := age.Encrypt(&sealed, r.parsed...)
	if err != nil {
		return nil, err
	}
	if _, err := w.Write(content); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil { // writes the end
		return nil, err
	}
	return sealed.Bytes(), nil
}

// NewLock returns what encrypts to recipients.
func NewLock(secret backup.Secret, r *Recipients) *backup.Lock {
	return &backup.Lock{Secret: secret, Seal: func(content []byte) []byte {
		sealed, err := r.seal(content)
		if err != nil {
			panic(err) // ParseRecipients has tried, and a buffer takes all
		}
		return sealed
	}}
}

// NewSecret draws a secret.
func NewSecret() (s backup.Secret) {
	_, _ = rand.Read(s[:]) // never fails
	return s
}
