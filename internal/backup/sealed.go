package backup

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
)

// Opener decrypts what a Lock has encrypted, at most so many bytes of content. ErrRecipients; any other error is damage.
type Opener func(sealed []byte, most int64) ([]byte, error)

// Secret belongs to one set of recipients. It names what is shipped, so that a reader of names and encrypted objects can
// confirm no guess of what they hold; it opens nothing. The zero value is that of a backup in the clear.
type Secret [32]byte

// Set is that of the secret.
func (s *Secret) Set() Set {
	if *s == (Secret{}) {
		return 0
	}
	return max(Set(binary.LittleEndian.Uint32(s.derive("set", nil))), 1)
}

// Label is a point as names have it: in the place of the sum, which somebody who guesses an entry could compute, is one that
// only the secret gives.
func (s *Secret) Label(p Point) Point {
	if *s == (Secret{}) {
		return p
	}
	about := binary.LittleEndian.AppendUint64(nil, uint64(p.Index))
	about = binary.LittleEndian.AppendUint64(about, p.Sum)
	return Point{p.Index, binary.LittleEndian.Uint64(s.derive("point", about))}
}

// FileKey is the key of a file of a base with a content. Equal contents have equal keys, and so equal objects, which are put
// once; no key meets two contents.
func (s *Secret) FileKey(content Hash) *FileKey {
	k := FileKey(s.derive("file", content[:]))
	return &k
}

func (s *Secret) derive(use string, about []byte) []byte {
	h := hmac.New(sha256.New, s[:])
	h.Write([]byte("quorate backup " + use + "\n"))
	h.Write(about)
	return h.Sum(nil)
}

// FileKey encrypts one file of a base, with AES-256 in counter mode. The manifest, which is encrypted to the recipients, has
// it, beside the hash of the encrypted file, which proves the content.
type FileKey [32]byte

// Stream encrypts, or decrypts, a file from an offset on.
func (k *FileKey) Stream(offset int64) cipher.Stream {
	block, err := aes.NewCipher(k[:])
	if err != nil {
		panic(err) // the length is a constant
	}
	var counter [aes.BlockSize]byte
	binary.BigEndian.PutUint64(counter[8:], uint64(offset)/aes.BlockSize)
	stream := cipher.NewCTR(block, counter[:])
	skipped := make([]byte, offset%aes.BlockSize)
	stream.XORKeyStream(skipped, skipped)
	return stream
}

// MarshalText implements encoding.TextMarshaler.
func (k *FileKey) MarshalText() ([]byte, error) { return hex.AppendEncode(nil, k[:]), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (k *FileKey) UnmarshalText(text []byte) error {
	read, ok := parseHash(string(text))
	if !ok {
		return fmt.Errorf("%w: a key of a file", ErrDamaged) // it is not repeated
	}
	*k = FileKey(read)
	return nil
}

// Lock encrypts what a member ships to a set of recipients. A nil Lock leaves it in the clear.
type Lock struct {
	Secret Secret
	// Seal encrypts a content to the recipients. Each call gives other bytes.
	Seal func(content []byte) []byte
}

func (l *Lock) secret() *Secret {
	if l == nil {
		return &Secret{}
	}
	return &l.Secret
}

// Set is that of the recipients, zero of a nil Lock.
func (l *Lock) Set() Set { return l.secret().Set() }

// A sealed object, of a segment or a gap, has a head of 16 bytes before what Seal returned:
//
//	0           8         12        16
//	+-----------+---------+---------+--------+
//	| QUORSEA\n | version | attempt | sealed |
//	+-----------+---------+---------+--------+
const (
	sealedMagic   = "QUORSEA\n"
	sealedVersion = 1
	sealedHead    = 16
	// sealedRoom is what encrypting adds to an object at most.
	sealedRoom = 1 << 20
)

func (l *Lock) seal(content []byte) []byte {
	sealed := l.Seal(content)
	object := append(make([]byte, 0, sealedHead+len(sealed)), sealedMagic...)
	object = binary.LittleEndian.AppendUint32(object, sealedVersion)
	object = binary.LittleEndian.AppendUint32(object, 0)
	return append(object, sealed...)
}

// Another returns other bytes that say the same as a sealed object, for a name that is taken by damage.
func Another(object []byte) []byte {
	object = append([]byte(nil), object...)
	binary.LittleEndian.PutUint32(object[12:], binary.LittleEndian.Uint32(object[12:])+1)
	return object
}

// unseal decrypts a sealed object.
func unseal(object []byte, most int64, open Opener) ([]byte, error) {
	if len(object) < sealedHead || string(object[:8]) != sealedMagic {
		return nil, fmt.Errorf("%w: it is not encrypted, and its name says that it is", ErrDamaged)
	}
	switch version := binary.LittleEndian.Uint32(object[8:]); {
	case version > sealedVersion:
		return nil, fmt.Errorf("encrypted object of version %d: %w", version, ErrLater)
	case version < sealedVersion:
		return nil, fmt.Errorf("%w: there is no version %d", ErrDamaged, version)
	}
	return opened(object[sealedHead:], most, open)
}

func opened(sealed []byte, most int64, open Opener) ([]byte, error) {
	if open == nil {
		return nil, ErrSealed
	}
	content, err := open(sealed, most)
	if err != nil && !errors.Is(err, ErrRecipients) {
		err = fmt.Errorf("%w: it cannot be decrypted: %w", ErrDamaged, err)
	}
	return content, err
}
