package quoratepb

import (
	"crypto/sha256"
	"encoding/binary"
)

// ClientKeyBytes is the length of ProposeRequest.key.
const ClientKeyBytes = 32

// ClientID is the id of the native client that has a key: the first eight bytes of the key's SHA-256, big-endian, and never
// zero. To come in the name of a client whose id is known takes about 2^64 hashes.
func ClientID(key []byte) uint64 {
	sum := sha256.Sum256(key)
	return max(1, binary.BigEndian.Uint64(sum[:]))
}
