package engine

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"

	"github.com/quorate/quorate/internal/base/env"
	"github.com/quorate/quorate/internal/storage/durable"
)

// The file of the engine in memory:
//
//	"QRMEM" | version | repeated { uvarint key length | key | uvarint value length | value } | CRC32C, 4 bytes LE
//	   5         1                                                                          of all before
//
// It is written beside, synced and renamed, so a crash leaves the old one or the new one.
const (
	memMagic    = "QRMEM"
	memVersion  = 1
	memFileName = "STATE"
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func writeMemFile(fs env.FS, dir string, tree *memTree) (uint64, error) {
	buf := append([]byte(memMagic), memVersion)
	tree.Scan(func(item memItem) bool {
		buf = binary.AppendUvarint(buf, uint64(len(item.key)))
		buf = append(buf, item.key...)
		buf = binary.AppendUvarint(buf, uint64(len(item.value)))
		buf = append(buf, item.value...)
		return true
	})
	buf = binary.LittleEndian.AppendUint32(buf, crc32.Checksum(buf, castagnoli))
	if err := durable.WriteFile(fs, fs.PathJoin(dir, memFileName), buf); err != nil {
		return 0, diskError(dir, err)
	}
	return uint64(len(buf)), nil
}

func readMemFile(fs env.FS, dir string) (*memTree, uint64, error) {
	tree := newMemTree()
	path := fs.PathJoin(dir, memFileName)
	f, err := fs.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return tree, 0, nil
	}
	if err != nil {
		return nil, 0, diskError(dir, err)
	}
	buf, err := io.ReadAll(f)
	if err := errors.Join(err, f.Close()); err != nil {
		return nil, 0, diskError(dir, err)
	}
	if err := decodeMemFile(buf, tree); err != nil {
		return nil, 0, fmt.Errorf("%w (%s)", err, path)
	}
	return tree, uint64(len(buf)), nil
}

func decodeMemFile(buf []byte, tree *memTree) error {
	const header = len(memMagic) + 1
	if len(buf) < header+4 || string(buf[:len(memMagic)]) != memMagic {
		return ErrCorrupt
	}
	body, sum := buf[:len(buf)-4], binary.LittleEndian.Uint32(buf[len(buf)-4:])
	if crc32.Checksum(body, castagnoli) != sum {
		return ErrCorrupt
	}
	if body[header-1] != memVersion {
		return ErrNewer
	}
	for rest := body[header:]; len(rest) > 0; {
		var item memItem
		var ok bool
		if item.key, rest, ok = cutBytes(rest); !ok {
			return ErrCorrupt
		}
		if item.value, rest, ok = cutBytes(rest); !ok {
			return ErrCorrupt
		}
		tree.Set(item)
	}
	return nil
}

// cutBytes takes a length-prefixed string off the front.
func cutBytes(buf []byte) (head, rest []byte, ok bool) {
	n, w := binary.Uvarint(buf)
	if w <= 0 || n > uint64(len(buf)-w) {
		return nil, nil, false
	}
	end := w + int(n)
	return buf[w:end:end], buf[end:], true
}
