package atrest

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"time"
)

// KeyBytes is the length of a key: AES-256.
const KeyBytes = 32

// SaltBytes is the length of the random bytes from which, with a data key, the key of one file or segment is derived.
const SaltBytes = 32

// KeyID names a data key. It is random, and no secret.
type KeyID [16]byte

// String returns the id in hexadecimal.
func (id KeyID) String() string { return hex.EncodeToString(id[:]) }

// Key is a data key.
type Key struct {
	ID      KeyID
	Created time.Time

	secret [KeyBytes]byte
}

func newKey(now time.Time) *Key {
	k := &Key{Created: now.UTC().Truncate(time.Second)}
	_, _ = rand.Read(k.ID[:]) // never fails
	_, _ = rand.Read(k.secret[:])
	return k
}

// derive returns the AES block of a use of the key. The same use and salt give the same block.
func (k *Key) derive(salt []byte, use string) cipher.Block {
	derived, err := hkdf.Key(sha256.New, k.secret[:], salt, use, KeyBytes)
	if err == nil {
		var block cipher.Block
		if block, err = aes.NewCipher(derived); err == nil {
			return block
		}
	}
	panic(fmt.Sprintf("atrest: derive a key: %v", err)) // all lengths are constants
}

// NewSalt draws a salt.
func NewSalt() (salt [SaltBytes]byte) {
	_, _ = rand.Read(salt[:]) // never fails
	return salt
}

// Box seals the records of one use of a segment of the log.
type Box struct {
	aead  cipher.AEAD
	about [16]byte // what a record is bound to; reused, as a Box belongs to one goroutine
}

// BoxOverhead is by how many bytes a sealed record is longer: a nonce and a tag.
const BoxOverhead = 12 + 16

// Box returns the box of a segment. No other segment, nor another use of this one, may have the same salt. head is what the
// records are bound to.
func (k *Key) Box(salt [SaltBytes]byte, head []byte) *Box {
	return &Box{aead: gcm(k.derive(salt[:], "quorate log segment\n"+string(head)))}
}

// gcm draws the nonces itself, which is what FIPS 140 allows.
func gcm(block cipher.Block) cipher.AEAD {
	aead, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil || aead.Overhead() != BoxOverhead {
		panic(fmt.Sprintf("atrest: %v", err)) // the block is of package aes
	}
	return aead
}

func (b *Box) bind(offset int64, durable uint32) []byte {
	binary.LittleEndian.PutUint64(b.about[:], uint64(offset))
	binary.LittleEndian.PutUint32(b.about[8:], durable)
	return b.about[:12]
}

// Seal appends the sealed plaintext to dst, which must not overlap with it. It is bound to its place in the segment, and to how
// much of the segment was durable.
func (b *Box) Seal(dst, plaintext []byte, offset int64, durable uint32) []byte {
	return b.aead.Seal(dst, nil, plaintext, b.bind(offset, durable))
}

// Open returns what Seal was given, in bytes of its own.
func (b *Box) Open(sealed []byte, offset int64, durable uint32) ([]byte, error) {
	return b.aead.Open(nil, nil, sealed, b.bind(offset, durable))
}
