package mvcc

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"slices"
	"sync"

	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/storage/engine"
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// HashKV is a checksum over the history from the compact revision to rev (0 = published): every version in that span, and of
// the older ones those that a read at the compact revision still sees. It does not depend on which rows physical compaction has
// already deleted, so members that agree on rev and on the compact revision agree on the hash.
//
// A tombstone at the compact revision itself is left out: a read at it sees no key.
func (s *Store) HashKV(rev kv.Revision) (hash uint32, compact, current kv.Revision, err error) {
	current, err = s.atRevision(rev, func(at kv.Revision) error {
		if known, ok := s.hashes.find(at); ok && at == s.CompactRevision() {
			hash, compact = known.hash, known.compact
			return nil
		}
		hash, compact, err = s.hashAt(at)
		if err == nil {
			s.hashes.keep(knownHash{at, hash, compact})
		}
		return err
	})
	if err != nil {
		compact = s.CompactRevision()
	}
	return hash, compact, current, err
}

// knownHashes remembers the last answers. A compaction at exactly a revision that was hashed before changes the hash there; the
// earlier answer stays right, and is repeated with the compact revision that it belongs to.
type knownHashes struct {
	mu   sync.Mutex
	last []knownHash // oldest first
}

type knownHash struct {
	at      kv.Revision
	hash    uint32
	compact kv.Revision
}

const maxKnownHashes = 10

func (k *knownHashes) find(at kv.Revision) (knownHash, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for i := range k.last {
		if k.last[i].at == at {
			return k.last[i], true
		}
	}
	return knownHash{}, false
}

func (k *knownHashes) keep(h knownHash) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.last = slices.DeleteFunc(k.last, func(old knownHash) bool { return old.at == h.at })
	if len(k.last) == maxKnownHashes {
		k.last = slices.Delete(k.last, 0, 1)
	}
	k.last = append(k.last, h)
}

func (s *Store) hashAt(at kv.Revision) (hash uint32, compact kv.Revision, err error) {
	it, err := s.newIter([]byte{tableVersions}, []byte{tableVersions + 1}, at)
	if err != nil {
		return 0, 0, err
	}
	// A compaction may have come since; rows that it may delete are filtered by the compact revision in the answer.
	compact = s.CompactRevision()
	if at < compact {
		if err := it.Close(); err != nil {
			return 0, 0, fmt.Errorf("mvcc: close an iterator: %w", err)
		}
		return 0, 0, kv.ErrCompacted
	}
	var prefix []byte
	decided := false // the newest version at or below the compact revision was seen
	rows := 0
	for valid := it.First(); valid; valid = it.Next() {
		if rows++; s.ended(rows) {
			err = ErrEnded
			break
		}
		key, row := it.Key(), it.Value()
		own, pos, ok := splitVersionKey(key)
		if !ok {
			err = fmt.Errorf("%w: version key %x", ErrCorruptRow, key)
			break
		}
		if !bytes.Equal(own, prefix) {
			prefix, decided = append(prefix[:0], own...), false
		}
		if pos.Main > at {
			continue
		}
		if pos.Main <= compact {
			superseded := decided
			decided = true
			if superseded || isTombstone(row) {
				continue
			}
		}
		hash = crc32.Update(hash, castagnoli, key)
		hash = crc32.Update(hash, castagnoli, binary.LittleEndian.AppendUint32(nil, uint32(len(row))))
		hash = crc32.Update(hash, castagnoli, row)
	}
	if err := errors.Join(err, it.Error(), it.Close()); err != nil {
		return 0, 0, fmt.Errorf("mvcc: hash at revision %d: %w", at, err)
	}
	return hash, compact, nil
}

// lookEvery is the number of rows between two checks whether the store's life has ended.
const lookEvery = 1024

func (s *Store) ended(rows int) bool { return rows%lookEvery == 1 && s.life.Err() != nil }

// Hash is a checksum over every row of every table, for tests: members in the middle of a compaction differ.
func (s *Store) Hash() (uint32, error) {
	it, err := s.engine.NewIter(nil, nil)
	if err != nil {
		return 0, fmt.Errorf("mvcc: hash: %w", err)
	}
	var hash uint32
	rows := 0
	for valid := it.First(); valid; valid = it.Next() {
		if rows++; s.ended(rows) {
			err = ErrEnded
			break
		}
		if table := it.Key()[0]; table == tableNumbers || table == engine.LocalTable {
			continue // the progress of physical compaction, and the store's owner
		}
		hash = crc32.Update(hash, castagnoli, it.Key())
		hash = crc32.Update(hash, castagnoli, it.Value())
	}
	if err := errors.Join(err, it.Error(), it.Close()); err != nil {
		return 0, fmt.Errorf("mvcc: hash: %w", err)
	}
	return hash, nil
}
