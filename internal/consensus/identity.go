package consensus

import (
	"bytes"
	"cmp"
	"encoding/hex"
	"fmt"
)

// StorageID names one data directory for ever: random, drawn when an empty directory is first used. A disk that was
// lost and made anew has another one, so it can not pass for the member that it belonged to.
type StorageID [16]byte

// NoStorage is the storage id of no directory; in a configuration it means that the member is not bound yet.
var NoStorage StorageID

// IsZero reports whether id is NoStorage.
func (id StorageID) IsZero() bool { return id == NoStorage }

// Compare orders storage ids by their bytes.
func (id StorageID) Compare(other StorageID) int { return bytes.Compare(id[:], other[:]) }

func (id StorageID) String() string {
	if id.IsZero() {
		return "none"
	}
	return hex.EncodeToString(id[:])
}

// MarshalText implements encoding.TextMarshaler.
func (id StorageID) MarshalText() ([]byte, error) { return hex.AppendEncode(nil, id[:]), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (id *StorageID) UnmarshalText(text []byte) error {
	var read StorageID
	if n, err := hex.Decode(read[:], text[:min(len(text), 2*len(read))]); err != nil || n != len(read) || len(text) != 2*n {
		return fmt.Errorf("%w: %q is no storage id", ErrCorrupt, text)
	}
	*id = read
	return nil
}

// Epoch names one life of a cluster. It is zero at the founding; a recovery that drops members makes the next number, with
// a random id, so that two recoveries made apart differ.
type Epoch struct {
	Number   uint64
	Recovery [16]byte
}

// FoundingEpoch is the epoch that every cluster begins with.
var FoundingEpoch Epoch

// Compare orders epochs by their number, then by their recovery id. Two that differ in the recovery id alone are rivals:
// the order between them means nothing, but all members agree on it.
func (e Epoch) Compare(other Epoch) int {
	if c := cmp.Compare(e.Number, other.Number); c != 0 {
		return c
	}
	return bytes.Compare(e.Recovery[:], other.Recovery[:])
}

func (e Epoch) String() string {
	if e == FoundingEpoch {
		return "0"
	}
	return fmt.Sprintf("%d-%x", e.Number, e.Recovery[:4])
}

// Life names one run of a process on one data directory. Boots is 1 at the first start and is on disk before anything is
// sent; the nonce tells apart two processes that were started from copies of one directory.
type Life struct {
	Boots uint64
	Nonce uint64
}

// IsZero reports whether no life is named.
func (l Life) IsZero() bool { return l == Life{} }

func (l Life) String() string { return fmt.Sprintf("%d-%08x", l.Boots, uint32(l.Nonce)) }

// Identity says whose data it is. It is in the store, the log and the boots file of a data directory.
type Identity struct {
	Cluster ClusterID
	Member  MemberID
	Storage StorageID
	Epoch   Epoch
}
