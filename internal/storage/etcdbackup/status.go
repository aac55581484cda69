package etcdbackup

import (
	"context"
	"hash/crc32"
	"hash/maphash"
)

// Status is what etcdutl tells of a file: all its rows, in one number.
type Status struct {
	Hash      uint32 `json:"hash"` // CRC-32C over the names, keys and values of all buckets
	Revision  int64  `json:"revision"`
	TotalKey  int    `json:"totalKey"`  // that exist at Revision
	TotalSize int64  `json:"totalSize"` // bytes of the database
	Version   string `json:"version"`   // of the storage; empty before etcd 3.6
}

// Status reads the whole file, and so finds out whether it is sound.
func (f *File) Status(ctx context.Context) (Status, error) {
	status := Status{TotalSize: f.pages.bytesInUse()}
	hash := crc32.New(crc32.MakeTable(crc32.Castagnoli))
	live := map[uint64]struct{}{} // hashes, so that long keys do not fill the memory
	seed := maphash.MakeSeed()
	err := f.pages.buckets(func(name, bucket []byte) error {
		_, _ = hash.Write(name)
		return f.pages.rows(bucket, watchful(ctx, func(key, value []byte) error {
			_, _ = hash.Write(key)
			_, _ = hash.Write(value)
			switch {
			case string(name) == "key":
				v, err := DecodeVersion(key, value)
				if err != nil {
					return err
				}
				status.Revision = int64(v.Rev.Main)
				if id := maphash.Bytes(seed, v.KV.Key); v.Tombstone {
					delete(live, id)
				} else {
					live[id] = struct{}{}
				}
			case string(name) == "meta" && string(key) == "storageVersion":
				status.Version = storageVersion(value)
			}
			return nil
		}))
	})
	status.Hash, status.TotalKey = hash.Sum32(), len(live)
	return status, err
}
