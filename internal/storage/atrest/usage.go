package atrest

import (
	"encoding/binary"
	"errors"
	"io"
	"os"

	"github.com/quorate/quorate/internal/base/env"
)

// Usage is what files with one key take on disk.
type Usage struct{ Files, Bytes int64 }

// Usages counts the files below directories by their keys, from the first bytes of each. Plain are those that name no key:
// empty ones, and spares of the log that wait for their first use, are left out. Files that go meanwhile are not counted.
//
// segmentKey tells the key of a segment of the log from its first bytes.
func Usages(
	below env.FS, dirs []string, segmentKey func(head []byte) (KeyID, bool),
) (byKey map[KeyID]Usage, plain Usage, err error) {
	c := census{fs: below, segmentKey: segmentKey, byKey: map[KeyID]Usage{}}
	for _, dir := range dirs {
		if err := c.walk(dir); err != nil {
			return nil, Usage{}, err
		}
	}
	return c.byKey, c.plain, nil
}

type census struct {
	fs         env.FS
	segmentKey func([]byte) (KeyID, bool)
	byKey      map[KeyID]Usage
	plain      Usage
}

func (c *census) walk(path string) error {
	info, err := c.fs.Stat(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if !info.IsDir() {
		return c.count(path, info.Size())
	}
	names, err := c.fs.List(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	for _, name := range names {
		if err == nil {
			err = c.walk(c.fs.PathJoin(path, name))
		}
	}
	return err
}

func (c *census) count(path string, size int64) error {
	file, err := c.fs.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	var head [128]byte
	n, err := io.ReadFull(file, head[:])
	if err = errors.Join(cleared(err), file.Close()); err != nil {
		return err
	}
	id, ok := c.segmentKey(head[:n])
	if !ok {
		parsed, err := parseHead(head[:n])
		id, ok = parsed.key, err == nil
	}
	switch u := c.byKey[id]; {
	case ok:
		c.byKey[id] = Usage{u.Files + 1, u.Bytes + size}
	case n < headBytes, binary.LittleEndian.Uint64(head[:]) == 0: // nothing was written yet
	default:
		c.plain = Usage{c.plain.Files + 1, c.plain.Bytes + size}
	}
	return nil
}

// cleared is an error of io.ReadFull, but for an end.
func cleared(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return nil
	}
	return err
}
