package datadir

import (
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/storage/durable"
)

// bootsRecord is the content of the boots file: the identity of the data, and how often it was opened.
type bootsRecord struct {
	identity consensus.Identity
	boots    uint64
}

// bootsFormat is the text of the boots file, before its checksum:
//
//	quorate boots 1
//	cluster 5c1e1fd0bf1a7f32
//	member 8e9e05c52164694d
//	storage 5f0c2d9b1e6a4f8093b7c6d5e4f3a2b1
//	epoch 0 00000000000000000000000000000000
//	boots 3
const bootsFormat = "quorate boots 1\ncluster %x\nmember %x\nstorage %s\nepoch %d %s\nboots %d\n"

// bootsName and bootsForm are in its first line.
const (
	bootsName = "boots"
	bootsForm = 1
)

func (r *bootsRecord) text() string {
	i := &r.identity
	return fmt.Sprintf(bootsFormat, uint64(i.Cluster), uint64(i.Member), i.Storage, i.Epoch.Number,
		hex.EncodeToString(i.Epoch.Recovery[:]), r.boots)
}

func parseBoots(text string) (r bootsRecord, err error) {
	var cluster, member uint64
	var storage, recovery []byte
	_, err = fmt.Sscanf(text, bootsFormat2, &cluster, &member, &storage, &r.identity.Epoch.Number, &recovery, &r.boots)
	if err != nil {
		return r, err
	}
	r.identity.Cluster, r.identity.Member = consensus.ClusterID(cluster), consensus.MemberID(member)
	if len(storage) != len(r.identity.Storage) || len(recovery) != len(r.identity.Epoch.Recovery) {
		return r, errors.New("an id has the wrong length")
	}
	copy(r.identity.Storage[:], storage)
	copy(r.identity.Epoch.Recovery[:], recovery)
	if r.text() != text {
		return r, errors.New("it holds more than it should")
	}
	return r, nil
}

// bootsFormat2 is bootsFormat for scanning.
var bootsFormat2 = strings.ReplaceAll(bootsFormat, "%s", "%x")

func readBoots(options *Options) (bootsRecord, error) {
	text, err := durable.ReadSealed(options.FS, options.bootsFile())
	var r bootsRecord
	if err == nil {
		r, err = parseBoots(text)
	}
	if err != nil {
		return r, fmt.Errorf("datadir: %w: the boots file can not be used: %w", ErrDamaged, err)
	}
	return r, nil
}

func writeBoots(options *Options, r *bootsRecord) error {
	if err := durable.WriteSealed(options.FS, options.bootsFile(), r.text()); err != nil {
		return fmt.Errorf("datadir: boots file: %w", err)
	}
	return nil
}

// NewStorageID draws the id of a new data directory.
func NewStorageID() (id consensus.StorageID) {
	_, _ = rand.Read(id[:]) // never fails
	return id
}

// randomNonce draws the nonce of a life.
func randomNonce() uint64 {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails
	return binary.LittleEndian.Uint64(b[:])
}
