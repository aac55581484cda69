package seal

import (
	"bytes"
	"crypto/fips140"
	"errors"
	"fmt"
	"io"
	"strings"

	"filippo.io/age"

	"github.com/quorate/quorate/internal/backup"
	"github.com/quorate/quorate/internal/storage/keysource"
)

// maxIdentityBytes bounds a file of identities.
const maxIdentityBytes = 64 << 10

// ReadIdentities reads files of identities, as age-keygen writes them, and returns what decrypts with any of them. A file that
// others than its owner may read is refused. Without files it returns nil.
func ReadIdentities(names []string) (backup.Opener, error) {
	var all []age.Identity
	for _, name := range names {
		content, err := keysource.ReadSecret(name, maxIdentityBytes)
		if err == nil && len(content) > maxIdentityBytes {
			err = fmt.Errorf("%s: the file has more than %d bytes: it is no file of identities", name, maxIdentityBytes)
		}
		if err != nil {
			return nil, err
		}
		found, err := parseIdentities(content)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		all = append(all, found...)
	}
	switch {
	case len(all) == 0:
		return nil, nil
	case fips140.Enforced():
		return nil, ErrFIPS
	}
	return func(sealed []byte, most int64) ([]byte, error) { return open(sealed, most, all) }, nil
}

var (
	errNoIdentity = errors.New("it is no file of identities: age-keygen writes one, with a line that begins with " +
		"AGE-SECRET-KEY-")
	errPublic = errors.New("it holds public keys, to which a backup is encrypted: give the file with the secret key, " +
		"which age-keygen wrote")
	errProtected = errors.New("it is encrypted itself: decrypt it with age into a file that nobody but you may read, and " +
		"remove that afterwards")
)

// parseIdentities reads identities. Errors of the library may repeat a part of a secret.
func parseIdentities(content []byte) ([]age.Identity, error) {
	text := strings.ReplaceAll(string(content), "\r\n", "\n")
	found, err := age.ParseIdentities(strings.NewReader(text))
	switch {
	case err == nil:
		return found, nil
	case strings.HasPrefix(text, "age-encryption.org/"), strings.HasPrefix(text, "-----BEGIN AGE"):
		return nil, errProtected
	case strings.HasPrefix(text, "age1"), strings.Contains(text, "\nage1"):
		return nil, errPublic
	}
	return nil, errNoIdentity
}

func open(sealed []byte, most int64, identities []age.Identity) ([]byte, error) {
	reader, err := age.Decrypt(bytes.NewReader(sealed), identities...)
	if other := (*age.NoIdentityMatchError)(nil); errors.As(err, &other) {
		return nil, backup.ErrRecipients
	}
	if err != nil {
		return nil, err
	}
	content, err := io.ReadAll(io.LimitReader(reader, most+1))
	switch {
	case err != nil:
		return nil, err
	case int64(len(content)) > most:
		return nil, fmt.Errorf("more than %d bytes", most)
	}
	return content, nil
}
