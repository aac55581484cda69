package etcdbackup

import (
	"context"
	"hash/crc32"
	"hash/maphash"

	"github.com/quorate/quorate/internal/kv"
)

// HashKV is etcd's checksum over the history of all keys up to a revision, without what a compaction may have left to delete.
// Files with the same history have the same, whatever else is in them.
type HashKV struct {
	Hash            uint32 `json:"hash"` // CRC-32C
	HashRevision    int64  `json:"hashRevision"`
	CompactRevision int64  `json:"compactRevision"`
}

// HashKV reads all versions up to a revision, or up to the last one if it is 0. A revision before the compaction, or after the
// last one, is kv.ErrCompacted or kv.ErrFutureRevision.
func (f *File) HashKV(ctx context.Context, revision kv.Revision) (HashKV, error) {
	head, err := f.Head(ctx)
	if err != nil {
		return HashKV{}, err
	}
	visible, last, err := f.visibleAt(ctx, revision)
	switch {
	case err != nil:
		return HashKV{}, err
	case revision > 0 && revision < head.Compacted:
		return HashKV{}, kv.ErrCompacted
	case revision > last:
		return HashKV{}, kv.ErrFutureRevision
	}
	if revision <= 0 {
		revision = last
	}
	sum := crc32.New(crc32.MakeTable(crc32.Castagnoli))
	_, _ = sum.Write([]byte("key"))
	err = f.Rows(ctx, "key", func(key, value []byte) error {
		rev, tombstone, err := decodeRevision(key)
		switch {
		case err != nil:
			return err
		case rev.Main > revision:
			return nil
		case rev.Main <= head.Compacted && len(visible) > 0 && !visible[rev]:
			return nil
		case rev.Main == head.Compacted && tombstone: // some versions of etcd keep it, some do not
			return nil
		}
		_, _ = sum.Write(key)
		_, _ = sum.Write(value)
		return nil
	})
	return HashKV{Hash: sum.Sum32(), HashRevision: int64(revision), CompactRevision: int64(head.Compacted)}, err
}

// visibleAt returns the versions that a read at a revision sees, and the last revision of the file. 0 is the last one.
func (f *File) visibleAt(ctx context.Context, revision kv.Revision) (map[kv.Rev]bool, kv.Revision, error) {
	newest := map[uint64]kv.Rev{} // by hashes, so that long keys do not fill the memory
	seed := maphash.MakeSeed()
	var last kv.Revision
	err := f.Rows(ctx, "key", func(key, value []byte) error {
		v, err := DecodeVersion(key, value)
		if err != nil {
			return err
		}
		last = v.Rev.Main
		if revision > 0 && v.Rev.Main > revision {
			return nil
		}
		if id := maphash.Bytes(seed, v.KV.Key); v.Tombstone {
			delete(newest, id)
		} else {
			newest[id] = v.Rev
		}
		return nil
	})
	visible := make(map[kv.Rev]bool, len(newest))
	for _, rev := range newest {
		visible[rev] = true
	}
	return visible, max(last, 1), err
}
