package snapshot

import (
	"errors"
	"fmt"
	"hash/crc32"
	"io"

	"github.com/quorate/quorate/internal/base/env"
	"github.com/quorate/quorate/internal/storage/durable"
)

// partialSuffix marks a directory that Receive has not finished. Such a name never reaches the caller.
const partialSuffix = ".partial"

// Receive is ReceiveBeside without a reserve.
func Receive(fs env.FS, r io.Reader, dir string) error { return ReceiveBeside(fs, r, dir, 0) }

// ReceiveBeside reads a stream that Write wrote, to its end, and makes it the snapshot in dir, which it first empties.
// It returns nil only when everything is verified and durable; see invariant 1. It fails with ErrNoSpace if the disk has no
// room for it beside reserve bytes.
func ReceiveBeside(fs env.FS, r io.Reader, dir string, reserve int64) error {
	partial := dir + partialSuffix
	err := receive(fs, r, partial, dir, reserve)
	if err != nil {
		return errors.Join(fmt.Errorf("snapshot: receive: %w", err), fs.RemoveAll(partial), fs.RemoveAll(dir))
	}
	return nil
}

func receive(fs env.FS, r io.Reader, partial, dir string, reserve int64) error {
	parent := fs.PathDir(dir)
	if err := errors.Join(fs.RemoveAll(partial), fs.RemoveAll(dir), fs.MkdirAll(partial, 0o755)); err != nil {
		return err
	}
	m, err := readManifest(r)
	if err != nil {
		return err
	}
	if err := checkSpace(fs, parent, m.SizeBytes(), reserve); err != nil {
		return err
	}
	buffer := make([]byte, copyBytes)
	for _, f := range m.Files {
		if err := receiveFile(fs, r, fs.PathJoin(partial, f.Name), f, buffer); err != nil {
			return fmt.Errorf("%s: %w", f.Name, err)
		}
	}
	if err := readEnd(r); err != nil {
		return err
	}
	if err := writeFile(fs, fs.PathJoin(partial, manifestName), m.append(nil)); err != nil {
		return err
	}
	if err := durable.SyncDir(fs, partial); err != nil {
		return err
	}
	if err := fs.Rename(partial, dir); err != nil {
		return err
	}
	// The parent itself may be new.
	return errors.Join(durable.SyncDir(fs, parent), durable.SyncDir(fs, fs.PathDir(parent)))
}

// checkSpace refuses at once what could only fail later. Not every file system can tell.
func checkSpace(fs env.FS, dir string, need, reserve int64) error {
	usage, err := fs.DiskUsage(dir)
	if err == nil && (usage.AvailBytes < uint64(reserve) || usage.AvailBytes-uint64(reserve) < uint64(need)) {
		return fmt.Errorf("%w: %d bytes needed beside a reserve of %d, %d available", ErrNoSpace, need, reserve,
			usage.AvailBytes)
	}
	return nil
}

func receiveFile(fs env.FS, r io.Reader, path string, f File, buffer []byte) (err error) {
	file, err := fs.Create(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	var sum uint32
	for left := f.Size; left > 0; {
		piece := buffer[:min(int64(len(buffer)), left)]
		if _, err := io.ReadFull(r, piece); err != nil {
			return cutShort(err)
		}
		// Before the write, which is allowed to modify the slice.
		sum = crc32.Update(sum, castagnoli, piece)
		left -= int64(len(piece))
		if _, err := file.Write(piece); err != nil {
			return err
		}
	}
	if sum != f.Sum {
		return fmt.Errorf("%w: checksum %08x, want %08x", ErrCorrupt, sum, f.Sum)
	}
	return file.Sync()
}

// readEnd demands the end mark and nothing behind it.
func readEnd(r io.Reader) error {
	var end [len(streamEnd) + 1]byte
	n, err := io.ReadFull(r, end[:])
	switch {
	case err == nil:
		return fmt.Errorf("%w: more bytes than announced", ErrCorrupt)
	case !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF):
		return err
	case n < len(streamEnd):
		return cutShort(err)
	case string(end[:n]) != streamEnd:
		return fmt.Errorf("%w: no end mark", ErrCorrupt)
	}
	return nil
}
